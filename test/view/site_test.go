package view

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/model"
	"github.com/fit-eval/fit/internal/report/versus"
	"github.com/fit-eval/fit/internal/report/versus/versustest"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/price"
)

// site is one server for all tests that only read: the demo, heads to head of two and of three
// agents with judges, one with errors, and traces.
var site = sync.OnceValues(func() (string, error) {
	demo, err := demoOnce()
	if err != nil {
		return "", err
	}
	top := filepath.Dir(demo)
	if err := errors.Join(
		writeJudged(filepath.Join(top, "judged"), 12, false),
		writeContest(filepath.Join(top, "three"), 3,
			versustest.Solves, "gives-up", versustest.Solves),
		writeContest(filepath.Join(top, "errors"), 2, versustest.Solves, versustest.NoService),
		writeContest(filepath.Join(top, "cheats"), 2, versustest.Solves, versustest.Deletes),
		writeStopped(filepath.Join(top, "stopped"), demo),
		os.WriteFile(filepath.Join(top, "errors/runs/fix-add-00/pear/0/1/diff.patch"), []byte(hostileDiff), 0o600),
	); err != nil {
		return "", err
	}
	for _, name := range []string{"team.ndjson", "after.ndjson"} {
		content, err := os.ReadFile(filepath.Join("../../examples/traces", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(top, name), content, 0o600)
		}
		if err != nil {
			return "", err
		}
	}
	skips := begin()
	skips.text("the only entry that can be read")
	skips.WriteString("nonsense\n[1]\n")
	if err := os.WriteFile(filepath.Join(top, "skips.ndjson"), []byte(skips.String()), 0o600); err != nil {
		return "", err
	}
	return serveToTheEnd(top)
})

// writeStopped makes of an experiment one that its budget stopped after ten attempts.
func writeStopped(dir, from string) error {
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		return err
	}
	results, err := os.ReadFile(filepath.Join(dir, experiment.LedgerFile))
	if err != nil {
		return err
	}
	lines := strings.SplitAfterN(string(results), "\n", 11)
	journal, err := os.OpenFile(filepath.Join(dir, experiment.AttemptsFile), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = journal.WriteString(`{"process":{"budgets":{"experiment":{"usd":0.25}},"status":"budget",` +
		`"reason":"the experiment's budget of $0.25: $0.24 are spent"}}` + "\n")
	return errors.Join(err, journal.Close(), os.Remove(filepath.Join(dir, ledger.NoteFile(experiment.LedgerFile))),
		os.WriteFile(filepath.Join(dir, experiment.LedgerFile), []byte(strings.Join(lines[:10], "")), 0o600))
}

// serveToTheEnd starts a server that lives as long as the tests.
func serveToTheEnd(top string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(self, "view", "--no-open", top)
	cmd.Args[0] = "fit"
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", err
	}
	atTheEnd(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	return strings.TrimSpace(address), err
}

// writeContest writes a head to head of so many tasks, two runs each; arms are named by a letter.
func writeContest(dir string, tasks int, does ...string) error {
	contest := versustest.Directory{Tasks: tasks, Runs: 2, Workspace: "export"}
	for i, what := range does {
		contest.Arms = append(contest.Arms, versustest.Arm{
			Name:  []string{"pear", "quince", "plum-with-a-name-that-is-far-too-long-for-a-column"}[i],
			Agent: "claude-code",
			Model: "claude-sonnet-4-5",
			Does:  what,
		})
	}
	return contest.Write(dir)
}

func writeJudged(dir string, tasks int, selfTest bool) error {
	if err := writeContest(dir, tasks, "gives-up", versustest.Solves); err != nil {
		return err
	}
	ctx := context.Background()
	source, err := versus.Open(ctx, dir, versus.Options{})
	if err != nil {
		return err
	}
	settings := judge.Settings{Mode: judge.All, Pairwise: judge.PairsAll, SelfTest: selfTest}
	for i := range 3 {
		settings.Panel.Members = append(settings.Panel.Members, judge.Member{
			Name:     fmt.Sprintf("member-%d", i),
			Protocol: "chat",
			Model:    fmt.Sprintf("judge-%d", i),
			Family:   fmt.Sprintf("family-%d", i),
		})
	}
	if settings.Prompts, err = judge.LoadPrompts(""); err != nil {
		return err
	}
	store, err := judge.Open(dir)
	if err != nil {
		return err
	}
	_, err = store.Ask(ctx, settings, source.Subjects(), judge.Limits{
		Client: func(judge.Member) (model.Client, error) { return lazy{}, nil },
	})
	return errors.Join(err, store.Close())
}

// lazy is a judge that passes everything, and of two prefers the one that is shown first.
type lazy struct{}

// Complete implements model.Client.
func (lazy) Complete(_ context.Context, r model.Request) (model.Response, error) {
	answer := `"result":"Pass"`
	evidence := `["calc.go:4 \"return a + b\""]`
	if strings.Contains(fmt.Sprintf("%+v", r), `"winner"`) {
		answer, evidence = `"winner":"X"`, `["req:r1 \"Add returns the sum\""]`
	}
	return model.Response{
		Blocks: []model.Block{{
			Type: model.BlockText,
			Text: "{" + answer + `,"confidence":0.9,"critique":"it adds","evidence":` + evidence + `,"claims":[]}`,
		}},
		StopReason: model.StopEndTurn,
		Usage:      price.TokenUsage{InputTokens: 1000, OutputTokens: 60},
	}, nil
}

// guide is the site as a test walks through it.
type guide struct {
	*asked
	address string
	top     string
}

func visit(t *testing.T) *guide {
	t.Helper()
	address, err := site()
	if err != nil {
		t.Fatal(err)
	}
	return &guide{asked: askView(t, address), address: address, top: filepath.Dir(demoDirectory(t))}
}

// id finds an experiment by its name.
func (g *guide) id(t *testing.T, name string) string {
	t.Helper()
	var list struct {
		Experiments []struct{ ID, Name string }
	}
	g.read(t, "/api/experiments", &list)
	for _, one := range list.Experiments {
		if one.Name == name {
			return one.ID
		}
	}
	t.Fatalf("there is no experiment %s", name)
	return ""
}

// lone finds a trace that belongs to no experiment.
func (g *guide) lone(t *testing.T, name string) string {
	t.Helper()
	var list struct {
		Traces []struct{ ID, Name string }
	}
	g.read(t, "/api/experiments", &list)
	for _, one := range list.Traces {
		if one.Name == name {
			return one.ID
		}
	}
	t.Fatalf("there is no trace %s", name)
	return ""
}

// agent is the trace of a cell, and its file.
func (g *guide) agent(t *testing.T, experiment, cell string) (id, file string) {
	t.Helper()
	var answer struct{ Traces []struct{ Trace string } }
	g.read(t, "/api/experiments/"+g.id(t, experiment)+"/cells/"+cell, &answer)
	id = answer.Traces[0].Trace
	_, name, _ := strings.Cut(id, "/")
	return url.QueryEscape(id), filepath.Join(g.top, experiment, filepath.FromSlash(name))
}

// spot is one page to be walked to.
type spot struct {
	Name string `json:"name"`
	Hash string `json:"hash"`
	Wait string `json:"wait"`
}

// drawn is what can be read on a page.
type drawn struct {
	name, Bar, Text string
	Tables          [][][]string
	Cited           []string
	Hovers          []string // what the mouse and screen readers find
}

// walk looks at pages in the browser in every way that users meet them, and returns what they say.
func walk(t *testing.T, args map[string]any, spots ...spot) map[string]drawn {
	t.Helper()
	return look(t, "walk", args, spots)
}

// glance returns what pages say.
func glance(t *testing.T, args map[string]any, spots ...spot) map[string]drawn {
	t.Helper()
	return look(t, "glance", args, spots)
}

func look(t *testing.T, how string, args map[string]any, spots []spot) map[string]drawn {
	t.Helper()
	args["places"] = spots
	pages := decode[map[string]drawn](t, chromium(t).run(t, how, args))
	for name, page := range pages {
		page.name = name
		pages[name] = page
	}
	return pages
}

// says checks that a page has every text.
func (d drawn) says(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(d.Bar+" "+d.Text, text) {
			t.Errorf("%s does not say %q: %.3000s", d.name, text, d.Bar+" "+d.Text)
		}
	}
}

// hovers checks that a page has every text for the mouse or for screen readers.
func (d drawn) hovers(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !slices.Contains(d.Hovers, text) {
			t.Errorf("nothing on %s is labelled %q: %q", d.name, text, d.Hovers)
		}
	}
}

// has checks that a page has a row of these cells; "*" is whatever.
func (d drawn) has(t *testing.T, want ...string) {
	t.Helper()
	for _, table := range d.Tables {
		for _, row := range table {
			if len(row) == len(want) && matches(row, want) {
				return
			}
		}
	}
	t.Errorf("%s has no row %q: %q", d.name, want, d.Tables)
}

func matches(row, want []string) bool {
	for i := range want {
		if want[i] != "*" && row[i] != want[i] {
			return false
		}
	}
	return true
}
