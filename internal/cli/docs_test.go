package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

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
