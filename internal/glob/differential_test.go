package glob_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/testenv"
)

const pairs = 20_000

// TestAgainstMinimatch compares us with the reference itself. For every generated pair the answers
// are equal, or we refused the pattern or the path as the package documentation says; a refused
// pattern never matches.
func TestAgainstMinimatch(t *testing.T) {
	cases := generatePairs(rand.New(rand.NewPCG(8, 10)), pairs)
	answers := askMinimatch(t, cases)
	refused, matched := 0, 0
	for i, pair := range cases {
		pattern, err := glob.Compile(pair[0])
		if err != nil {
			refused++
			continue
		}
		got, want := pattern.Match(pair[1]), answers[i] != nil && *answers[i]
		if want {
			matched++
		}
		if got == want || (!got && refusesPath(pair[0], pair[1])) {
			continue
		}
		t.Errorf("pattern %q, path %q: got %v, minimatch says %v", pair[0], pair[1], got, want)
	}
	t.Logf("%d pairs: %d patterns refused, %d matches", len(cases), refused, matched)
	// A comparison in which almost everything is refused or nothing matches would prove nothing.
	if refused > pairs/2 || matched < pairs/10 {
		t.Errorf("the generated pairs are too weak: %d of %d refused, %d matches", refused, pairs, matched)
	}
}

// refusesPath holds for the documented differences for paths: those that are not clean, and
// characters beyond U+FFFF where characters are counted.
func refusesPath(pattern, path string) bool {
	if strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") || strings.Contains(path, "//") ||
		strings.Contains("/"+path+"/", "/./") || strings.Contains("/"+path+"/", "/../") {
		return true
	}
	return strings.ContainsAny(pattern, "?[") && strings.ContainsFunc(path, func(r rune) bool { return r > 0xFFFF })
}

func askMinimatch(t *testing.T, cases [][2]string) []*bool {
	t.Helper()
	dir := filepath.Join("..", "..", "test", "minimatch")
	node := testenv.NeedTool(t, "node")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "minimatch")); err != nil {
		testenv.Missing(t, "minimatch is not installed: run npm ci in test/minimatch")
	}
	input, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), node, "oracle.mjs")
	command.Dir = dir
	command.Stdin = bytes.NewReader(input)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		t.Fatalf("asking minimatch: %v\n%s", err, complaint.String())
	}
	var answers []*bool
	if err := json.Unmarshal(output, &answers); err != nil {
		t.Fatal(err)
	}
	if len(answers) != len(cases) {
		t.Fatalf("minimatch answered %d of %d questions", len(answers), len(cases))
	}
	return answers
}

// generatePairs makes paths from few names and patterns from those paths, so that a good part of
// them match.
func generatePairs(random *rand.Rand, count int) [][2]string {
	generated := make([][2]string, count)
	for i := range generated {
		path := randomPath(random)
		if random.IntN(8) == 0 {
			generated[i] = [2]string{
				randomCharacters(random, `ab.*?/[]{},!^-\()|@+#$`),
				randomCharacters(random, "ab./[]{},-"),
			}
			continue
		}
		generated[i] = [2]string{randomPattern(random, path), path}
	}
	return generated
}

func randomCharacters(random *rand.Rand, alphabet string) string {
	text := make([]byte, 1+random.IntN(8))
	for i := range text {
		text[i] = alphabet[random.IntN(len(alphabet))]
	}
	return string(text)
}

func randomPath(random *rand.Rand) string {
	names := []string{
		"a", "b", ".a", "ab", "abc", "A", "x.md", "SKILL.md", ".claude", "é", "a b", "{a,b}", "a[1]", "a]b", "a(b)",
		"*", "$x", "!a", "#a", "a|b",
		"+", "a-b", "..a", "...", "😀", "\\", "a\nb",
	}
	segments := make([]string, 1+random.IntN(4))
	for i := range segments {
		segments[i] = names[random.IntN(len(names))]
		if random.IntN(3) > 0 {
			segments[i] = names[random.IntN(9)]
		}
	}
	return strings.Join(segments, "/")
}

func randomPattern(random *rand.Rand, path string) string {
	segments := strings.Split(path, "/")
	if random.IntN(6) == 0 {
		segments = strings.Split(randomPath(random), "/")
	}
	for i := range segments {
		switch random.IntN(4) {
		case 0:
			segments[i] = blurSegment(random, segments[i])
		case 1:
			segments[i] = []string{"*", "**", "***", "?", "*.md", "**/**", "**/*", "a**b", "**b"}[random.IntN(9)]
		}
	}
	pattern := strings.Join(segments, "/")
	switch random.IntN(12) {
	case 0:
		return pattern + "/**"
	case 1:
		return "**/" + pattern
	case 2:
		return "{" + pattern + "," + randomPath(random) + "}"
	case 3:
		return pattern + []string{"/", "{,x}", "{1..3}", "}", "\\", "]", "[", "(a)", "/.", "/.."}[random.IntN(10)]
	}
	return pattern
}

// blurSegment replaces one character by something that may match it.
func blurSegment(random *rand.Rand, segment string) string {
	runes := []rune(segment)
	at := random.IntN(len(runes))
	c := string(runes[at])
	blurred := []string{
		"*", "?", "[" + c + "]", "[!" + c + "]", "[^" + c + "x]", "[a-c]", "[A-Z" + c + "]", "{" + c + ",z}",
		"{z," + c + "}", "{" + c + ",{q,r}}", "\\" + c,
		"@(" + c + "|z)", "!(" + c + ")", "?(" + c + ")", "+(" + c + ")", "*(" + c + ")", "**", "[[:alpha:]]", "{a..c}",
		"[" + c + "-]", c + "*", "*" + c, c + "?",
	}
	return string(runes[:at]) + blurred[random.IntN(len(blurred))] + string(runes[at+1:])
}
