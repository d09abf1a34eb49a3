package conventions

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	tabWidth       = 4
	codeColumns    = 120
	commentColumns = 100
	// longLiteral is how many characters of a text make a line of a test an exception.
	longLiteral = 40
)

// TestLinesFitOnAScreen: code ends by column 120 and comments by 100. Raw strings, struct tags and
// texts that are too long for a line by themselves are exceptions; in tests, so are lines with a
// long text.
func TestLinesFitOnAScreen(t *testing.T) {
	for _, file := range goFiles(t) {
		limits := lineLimits(file.source, file.test)
		for i, line := range strings.Split(string(file.source), "\n") {
			if got := columns(line); limits[i] > 0 && got > limits[i] {
				t.Errorf("%s:%d: the line has %d columns, at most %d", file.path, i+1, got, limits[i])
			}
		}
	}
}

func columns(line string) int {
	return utf8.RuneCountInString(line) + (tabWidth-1)*strings.Count(line, "\t")
}

// lineLimits returns how many columns each line may have; 0 is any number.
func lineLimits(source []byte, test bool) []int {
	lines := strings.Split(string(source), "\n")
	limits := make([]int, len(lines))
	for i := range limits {
		limits[i] = codeColumns
	}
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return limits
		}
		if tok != token.COMMENT && tok != token.STRING {
			continue
		}
		first := fset.Position(pos).Line - 1
		last := first + strings.Count(text, "\n")
		switch {
		case tok == token.COMMENT:
			alone := strings.TrimSpace(lines[first][:fset.Position(pos).Column-1]) == ""
			breakable := strings.Contains(strings.TrimPrefix(text, "// "), " ") && !strings.HasPrefix(text, "//go:") &&
				!strings.HasPrefix(text, "//nolint") && !strings.HasPrefix(text, "//\t")
			for i := first; i <= last && alone; i++ {
				if limits[i] = commentColumns; !breakable {
					limits[i] = 0
				}
			}
		case tok == token.STRING && (text[0] == '`' || test && len(text) > longLiteral ||
			columns(lines[first][:indentation(lines[first])])+tabWidth+utf8.RuneCountInString(text) > codeColumns):
			for i := first; i <= last; i++ {
				limits[i] = 0
			}
		}
	}
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, "\t")) }

// TestPackagesCanBeHeldInMind: no package has more than 6,000 lines of code; comments and blank
// lines do not count.
func TestPackagesCanBeHeldInMind(t *testing.T) {
	const most = 6000
	lines := map[string]int{}
	for _, file := range goFiles(t) {
		if file.test {
			continue
		}
		for line := range strings.Lines(string(file.source)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				lines[path.Dir(file.path)]++
			}
		}
	}
	for pkg, n := range lines {
		if n > most {
			t.Errorf("%s has %d lines of code, at most %d may stand in one package", pkg, n, most)
		}
	}
}

// TestLongLiteralsTakeALineForEachField: a keyed literal with more than three fields is read field
// by field.
func TestLongLiteralsTakeALineForEachField(t *testing.T) {
	for _, file := range goFiles(t) {
		if file.test || forTests(file.pkg()) {
			continue
		}
		ast.Inspect(file.ast, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok || len(literal.Elts) <= 3 {
				return true
			}
			field, keyed := literal.Elts[0].(*ast.KeyValueExpr)
			if !keyed {
				return true
			}
			if _, named := field.Key.(*ast.Ident); named && sharesLine(literal) {
				t.Errorf("%s:%d: a literal with %d fields takes a line for each", file.path,
					fset.Position(literal.Pos()).Line, len(literal.Elts))
			}
			return true
		})
	}
}

func sharesLine(literal *ast.CompositeLit) bool {
	for i := 1; i < len(literal.Elts); i++ {
		if fset.Position(literal.Elts[i].Pos()).Line == fset.Position(literal.Elts[i-1].End()).Line {
			return true
		}
	}
	return false
}

// TestExpressionsAreCompiledWhenTheyAreUsed: what a package compiles for itself is paid for at
// every start of the program, used or not; internal/lazyregexp compiles on first use.
func TestExpressionsAreCompiledWhenTheyAreUsed(t *testing.T) {
	atStart := regexp.MustCompile(`(?m)^(var )?\s*\w+ *= *regexp\.MustCompile`)
	walk(t, func(rel string) {
		if path.Ext(rel) != ".go" || strings.HasSuffix(rel, "_test.go") {
			return
		}
		content, err := os.ReadFile(filepath.Join(repository(t), rel))
		if err == nil && atStart.Match(content) {
			t.Errorf("%s compiles an expression at the start: use lazyregexp.New", rel)
		}
	})
}
