package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fit-eval/fit/internal/agent/catalog"
)

// TestGuidesRunAsPrinted follows every guide as its reader would: all boxes marked sh, in order, in
// one shell in an empty directory. Each line of a box marked text must be in what the box before it
// printed.
func TestGuidesRunAsPrinted(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("%v, %d pages", err, len(pages))
	}
	for _, path := range pages {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".md")
		if !bytes.Contains(page, []byte("```sh\n")) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			followGuide(t, string(page))
		})
	}
}

var pageBlock = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// endOfBox ends what a box printed.
const endOfBox = "--- end of a box ---"

func followGuide(t *testing.T, page string) {
	t.Helper()
	var commands strings.Builder
	shown := map[int][]string{} // by the number of the box before
	boxes := 0
	for _, block := range pageBlock.FindAllStringSubmatch(page, -1) {
		switch language, body := block[1], block[2]; language {
		case "sh":
			boxes++
			fmt.Fprintf(&commands, "%secho '%s'\n", body, endOfBox)
		case "text":
			shown[boxes-1] = append(shown[boxes-1], strings.Split(strings.TrimSpace(body), "\n")...)
		case "console": // it takes what a test has not got; the command and its flags must exist
			for line := range strings.Lines(body) {
				if strings.HasPrefix(line, "fit") {
					fmt.Fprintf(&commands, "%s --help > /dev/null\n", strings.TrimSpace(line))
				}
			}
		}
	}
	if len(shown) == 0 {
		t.Error("the page shows no answer")
	}
	params := scripts()
	params.Cmds["printed"] = func(ts *testscript.TestScript, _ bool, _ []string) {
		printed := strings.Split(ts.ReadFile("stdout"), endOfBox)
		for box, lines := range shown {
			for _, line := range lines {
				if !strings.Contains(printed[box], line) {
					ts.Fatalf("box %d does not print %q, but\n%s", box+1, line, printed[box])
				}
			}
		}
	}
	const script = "cd empty\nexec sh -eu ../page.sh\nprinted\n-- empty/.keep --\n-- page.sh --\n"
	runScript(t, params, script+"rm .keep\nexec 2>&1\n"+commands.String())
}

// placesTable is the table of the agents guide that says what agents read of a project.
var placesTable = regexp.MustCompile(`(?m)^(\| agent \| instruction files \|.*\n\|[-|]+\n)((?:\|.*\n)*)`)

// TestTheAgentsGuideSaysWhatAgentsRead compares the table of the guide with the registry;
// go test -run TheAgentsGuide -update writes it.
func TestTheAgentsGuideSaysWhatAgentsRead(t *testing.T) {
	t.Parallel()
	const name = "../../docs/agents.md"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	found := placesTable.FindSubmatch(page)
	if found == nil {
		t.Fatal("the guide has no table of what agents read")
	}
	var rows strings.Builder
	for _, a := range catalog.Default().All() {
		info := a.Info()
		if !info.Places.Reads() {
			continue
		}
		var programs []string
		for _, program := range info.Places.Programs {
			programs = append(programs, program.Glob)
		}
		fmt.Fprintf(&rows, "| `%s` |", info.ID)
		if info.Places.OneOf {
			rows.WriteString(" the first of")
		}
		for _, list := range [][]string{
			info.Places.Instructions, info.Places.Skills, info.Places.Agents, info.Places.Commands, programs,
		} {
			cell := "–"
			if len(list) > 0 {
				cell = "`" + strings.Join(list, "`, `") + "`"
			}
			fmt.Fprintf(&rows, " %s |", cell)
		}
		rows.WriteByte('\n')
	}
	if rows.String() == string(found[2]) {
		return
	}
	if !*update {
		t.Fatalf("the table says\n%sand the registry\n%s", found[2], rows.String())
	}
	table := string(found[1]) + rows.String()
	if err := os.WriteFile(name, bytes.Replace(page, found[0], []byte(table), 1), 0o644); err != nil {
		t.Fatal(err)
	}
}

func runScript(t *testing.T, params testscript.Params, script string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.txtar")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	params.Dir, params.Files = "", []string{file}
	testscript.Run(t, params)
}
