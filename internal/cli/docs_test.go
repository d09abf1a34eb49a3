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

// TestTheGuideFromAnEmptyDirectoryToTheAnswer runs the page as it stands, in one shell: every line
// of a block of text must be in what all of its commands printed.
func TestTheGuideFromAnEmptyDirectoryToTheAnswer(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/did-it-help.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands, shown strings.Builder
	for _, block := range pageBlock.FindAllStringSubmatch(string(page), -1) {
		switch block[2] {
		case "sh":
			commands.WriteString(block[4])
		case "text":
			for line := range strings.SplitSeq(strings.TrimSpace(block[4]), "\n") {
				fmt.Fprintf(&shown, "stdout '%s'\n", strings.ReplaceAll(regexp.QuoteMeta(line), "'", "''"))
			}
		default:
			t.Errorf("the page hides something from its reader: %s", block[0])
		}
	}
	if shown.Len() == 0 {
		t.Error("the page shows no answer")
	}
	runScript(t, "exec sh -eu page.sh\n"+shown.String()+"-- page.sh --\n"+commands.String())
}

// TestCommandsOfTheCollaborationGuide runs the page as it stands: blocks with a file name become
// files, blocks of sh are run in order, and every line of a block of text must be in what the block
// before it printed. Comments "run:" are what the test needs beside the page: a model and a bridge.
func TestCommandsOfTheCollaborationGuide(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/agent-collaboration.md")
	if err != nil {
		t.Fatal(err)
	}
	script, commands := scriptOf(string(page))
	if commands < 8 {
		t.Fatalf("the page has only %d blocks of commands", commands)
	}
	runScript(t, script)
}

// TestCommandsOfThePricesPage gives the page the model that it talks to.
func TestCommandsOfThePricesPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/prices.md")
	if err != nil {
		t.Fatal(err)
	}
	script, commands := scriptOf(string(page))
	if commands != 1 {
		t.Fatalf("the page has %d blocks of commands", commands)
	}
	runScript(t, "model hello.json\nenv FIT_MODEL_URL=$MODEL_URL\n"+script+
		"-- hello.json --\n{\"turns\":[{\"text\":\"Hello.\"}]}\n")
}

// TestCommandsOfTheGatewayGuide gives the page the model that it talks to.
func TestCommandsOfTheGatewayGuide(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	script, commands := scriptOf(string(page))
	if commands != 3 {
		t.Fatalf("the page has %d blocks of commands", commands)
	}
	runScript(t, script+"-- hello.json --\n{\"turns\":[{\"text\":\"Hello.\"}]}\n")
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

func runScript(t *testing.T, script string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.txtar")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	params := scripts()
	params.Dir, params.Files = "", []string{file}
	testscript.Run(t, params)
}

var pageBlock = regexp.MustCompile("(?ms)^<!-- run: (.*?) -->$|^```(\\w+)(?: (\\S+))?\n(.*?)^```$")

// scriptOf makes a test script of a page.
func scriptOf(page string) (script string, commands int) {
	var steps, files strings.Builder
	for _, block := range pageBlock.FindAllStringSubmatch(page, -1) {
		run, language, name, body := block[1], block[2], block[3], block[4]
		switch {
		case run != "":
			fmt.Fprintln(&steps, run)
		case name != "":
			fmt.Fprintf(&files, "-- %s --\n%s", name, body)
		case language == "sh":
			commands++
			fmt.Fprintf(&files, "-- block%d.sh --\n%s", commands, body)
			fmt.Fprintf(&steps, "exec sh -eu block%d.sh\n", commands)
		case language == "console": // it takes what a test has not got; the command and its flags must exist
			for i, line := range strings.Split(strings.TrimSpace(body), "\n") {
				if strings.HasPrefix(line, "fit") {
					name := fmt.Sprintf("shown%d-%d.sh", files.Len(), i)
					fmt.Fprintf(&files, "-- %s --\n%s --help\n", name, strings.TrimSuffix(line, " &"))
					fmt.Fprintf(&steps, "exec sh -eu %s\n", name)
				}
			}
		case language == "text":
			for line := range strings.SplitSeq(strings.TrimSpace(body), "\n") {
				fmt.Fprintf(&steps, "stdout '%s'\n", strings.ReplaceAll(regexp.QuoteMeta(line), "'", "''"))
			}
		}
	}
	return steps.String() + files.String(), commands
}

// TestCommandsOfTheHeadToHeadGuide runs the page as it stands.
func TestCommandsOfTheHeadToHeadGuide(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/head-to-head.md")
	if err != nil {
		t.Fatal(err)
	}
	script, commands := scriptOf(string(page))
	if commands < 3 {
		t.Fatalf("the page has only %d blocks of commands", commands)
	}
	runScript(t, script)
}

// TestCommandsOfTheAgentsGuide runs the page as it stands.
func TestCommandsOfTheAgentsGuide(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	script, commands := scriptOf(string(page))
	if commands < 4 {
		t.Fatalf("the page has only %d blocks of commands", commands)
	}
	runScript(t, script)
}

// TestCommandsOfTheTasksGuide runs the page as it stands.
func TestCommandsOfTheTasksGuide(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/tasks.md")
	if err != nil {
		t.Fatal(err)
	}
	script, commands := scriptOf(string(page))
	if commands != 11 {
		t.Fatalf("the page has %d blocks of commands", commands)
	}
	runScript(t, script)
}
