package versus

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

func TestMain(m *testing.M) {
	os.Exit(m.Run())
}

// stage is a copy of examples/versus whose files name a model that listens, and whose task starts
// from a repository of the user's.
type stage struct {
	t       *testing.T
	dir     string
	environ []string
	server  *scripted.Server

	mu    sync.Mutex
	asked []string // the first lines of the judges' system prompts
	all   int
	above int // requests with a text from above the repository
	named int // requests of agents and judges that name a task or an arm
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, dir: t.TempDir()}
	bin, err := filepath.Abs("../agents/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"claude", "codex", "pi"} {
		if _, err := os.Stat(filepath.Join(bin, program)); err != nil {
			testenv.Missing(t, "%s is not installed: run make setup", program)
		}
	}
	home := t.TempDir()
	s.environ = []string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + home,
		"XDG_CONFIG_HOME=" + home, "LANG=C.UTF-8",
	}
	if err := os.CopyFS(s.dir, os.DirFS("../../examples/versus")); err != nil {
		t.Fatal(err)
	}
	s.serve()
	for name, text := range map[string]string{
		"testdata/go/CLAUDE.md": "Rules of this repository, for one agent: MARK-CLAUDE.\n",
		"testdata/go/AGENTS.md": "Rules of this repository, for the others: MARK-AGENTS.\n",
		"CLAUDE.md":             "Rules of the directory above: MARK-ABOVE.\n",
		"AGENTS.md":             "Rules of the directory above: MARK-ABOVE.\n",
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.git("init", "-q", "-b", "main")
	s.git("add", ".")
	s.git("-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "base")
	return s
}

// serve starts the model and writes its address into the files that name it.
func (s *stage) serve() {
	s.t.Helper()
	script, err := scripted.Load(filepath.Join(s.dir, "model.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.server, err = scripted.Listen("127.0.0.1:0",
		scripted.NewServer(map[string]*scripted.Script{"": script},
			scripted.Options{LogBodies: true, OnRequest: s.count}))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range []string{"three.yaml", "panel.yaml"} {
		path := filepath.Join(s.dir, name)
		content, err := os.ReadFile(path)
		if err != nil {
			s.t.Fatal(err)
		}
		content = bytes.ReplaceAll(content, []byte("http://127.0.0.1:8089"), []byte(s.server.URL))
		if err := os.WriteFile(path, content, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
}

// count keeps what judges were asked.
func (s *stage) count(r scripted.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all++
	for _, name := range []string{"go-plural", "quokkaquokka"} {
		if bytes.Contains(r.Body, []byte(name)) || strings.Contains(r.Path, name) {
			s.named++
		}
	}
	if bytes.Contains(r.Body, []byte("MARK-ABOVE")) {
		s.above++
	}
	if _, rest, found := strings.Cut(string(r.Body), "fit-judge/1 "); found {
		kind, _, _ := strings.Cut(rest, `\n`)
		s.asked = append(s.asked, kind)
	}
}

// questions returns what was asked since the last call.
func (s *stage) questions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func (s *stage) git(args ...string) string {
	s.t.Helper()
	command := exec.Command("git", args...)
	command.Dir = filepath.Join(s.dir, "testdata", "go")
	out, err := command.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// run runs a command line and wants it to exit with 0.
func (s *stage) run(environ []string, args ...string) []byte {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	con := &console.Console{
		Stdin:   strings.NewReader(""),
		Stdout:  &stdout,
		Stderr:  &stderr,
		Environ: environ,
		Dir:     s.dir,
		Version: "test",
	}
	if code := cli.Run(s.t.Context(), args, con); code != 0 {
		s.t.Fatalf("%v exited with %d\n%s%s", args, code, stderr.String(), stdout.String())
	}
	s.t.Logf("%v\n%s", args, stderr.String())
	return stdout.Bytes()
}

// cell is what the test looks at in a cell of the report.
type cell struct {
	Agent     string
	Status    string
	Resolved  *bool
	Integrity []struct {
		Kind, File string
		Line       int
	}
	Errors   []struct{ Category string }
	Rubric   evidence.QualityRubric
	Verdicts []struct {
		Dimension string
		Result    *string
		Pass      int
	}
	Treatment *ledger.Treatment
}

// given lists the instruction files that the model of a cell was given whole.
func (c cell) given() []string {
	var files []string
	for _, piece := range c.Treatment.Pieces {
		if piece.Kind == ledger.PieceInstructions && piece.Given == ledger.GivenWhole {
			files = append(files, piece.Path)
		}
	}
	return files
}

func (c cell) text() string {
	text := c.Agent + " " + c.Status
	if c.Resolved != nil && *c.Resolved {
		text += " resolved"
	}
	for _, flag := range c.Integrity {
		text += " " + flag.Kind + " " + flag.File
		if flag.Line == 0 {
			text += " without a line"
		}
	}
	for _, wrong := range c.Errors {
		text += " " + wrong.Category
	}
	return text
}

// Claude Code solves the task, Codex deletes the test, pi gives up. The report says so, and the
// directory alone yields the same one, wherever it lies; judges are asked once.
func TestHeadToHead(t *testing.T) {
	s := newStage(t)
	robot := s.run(s.environ, "subq", "eval", "run", "go.yaml", "--arms", "three.yaml", "--panel", "panel.yaml",
		"--workspace", "worktree", "--self-test", "off", "--runs", "1", "--output", "R", "--robot")
	var document struct {
		Cells []cell
		Pairs []struct {
			A, B    string
			Prompts evidence.PromptComparison
		}
	}
	if err := json.Unmarshal(robot, &document); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range document.Cells {
		got = append(got, c.text())
	}
	want := []string{
		"claude-code ok resolved",
		"codex disqualified test_deleted plural_test.go wrong_fix",
		"pi-agent ok no_change",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the cells differ: %s", diff)
	}
	for i, file := range []string{"CLAUDE.md", "AGENTS.md", "AGENTS.md"} { // in a worktree, as on their users' desks
		if c := document.Cells[i]; c.Treatment == nil || !slices.Equal(c.given(), []string{file}) {
			t.Errorf("%s was given %+v, want %s", c.Agent, c.Treatment, file)
		}
	}
	if s.named > 0 {
		t.Errorf("%d requests name the task", s.named)
	}
	if s.above > 0 {
		t.Errorf("%d requests have what stands above the repository", s.above)
	}
	if quality := document.Cells[0].Rubric.CodeQuality; quality == nil || *quality != 1 {
		t.Error("the linter of the task does not say that the solution is well formed")
	}
	if verdicts := document.Cells[0].Verdicts; len(verdicts) != len(evidence.Dimensions()) {
		t.Errorf("%d dimensions of the solution were judged: %+v", len(verdicts), verdicts)
	}
	for _, verdict := range document.Cells[0].Verdicts {
		if verdict.Result == nil || *verdict.Result != "Pass" || verdict.Pass != 3 {
			t.Errorf("the panel says of the solution's %s: %+v", verdict.Dimension, verdict)
		}
	}
	for _, pair := range document.Pairs { // the gateway saw what every agent told its model
		if pair.Prompts.A != evidence.PromptsCaptured || pair.Prompts.B != evidence.PromptsCaptured {
			t.Errorf("prompts of %s are %s, of %s %s", pair.A, pair.Prompts.A, pair.B, pair.Prompts.B)
		}
		if changed := changedLines(pair.Prompts); changed < 50 {
			t.Errorf("%d lines of the system prompts of %s and %s differ", changed, pair.A, pair.B)
		}
	}
	if list := s.git("worktree", "list"); strings.Count(list, "\n") != 1 {
		t.Errorf("worktrees are left:\n%s", list)
	}
	if len(s.questions()) == 0 {
		t.Error("no judge was asked")
	}
	s.asksOnce()
	s.reportsAgain(robot)
}

// The tasks in Node and Python fail on their base and pass with their reference patch, which is
// checked before the run, and an agent that repairs them is seen to have done so.
func TestOtherLanguages(t *testing.T) {
	s := newStage(t)
	robot := s.run(s.environ, "fit", "versus", "run", "node.yaml", "python.yaml", "--arm",
		"quokkaquokka=agent:builtin,model:claude-sonnet-4-5", "--model-url", s.server.URL, "--no-probe", "--judge", "off",
		"--output", "R", "--runs", "1", "--robot")
	var document struct{ Cells []cell }
	if err := json.Unmarshal(robot, &document); err != nil {
		t.Fatal(err)
	}
	for _, c := range document.Cells {
		if c.text() != "builtin ok resolved" {
			t.Errorf("a cell is %q", c.text())
		}
	}
	if len(document.Cells) != 2 || s.named > 0 {
		t.Errorf("there are %d cells, want two; %d requests name the arm", len(document.Cells), s.named)
	}
}

// changedLines counts the lines of system prompts, tools left out, that only one of two agents has.
func changedLines(c evidence.PromptComparison) int {
	lines := 0
	for _, label := range c.Labels {
		if label.Label != "init" && !strings.HasPrefix(label.Label, session.ToolLabel) {
			lines += label.Added + label.Removed
		}
	}
	return lines
}

// asksOnce: judging again asks nothing, and after a change in one dimension's prompt that dimension
// alone.
func (s *stage) asksOnce() {
	s.t.Helper()
	before := s.all
	s.run(s.environ, "fit", "versus", "judge", "R")
	if s.all != before {
		s.t.Errorf("judging again made %d requests", s.all-before)
	}
	copied := filepath.Join(s.dir, "J")
	prompts := filepath.Join(s.dir, "prompts")
	sources := map[string]string{copied: filepath.Join(s.dir, "R"), prompts: "../../internal/judge/prompts"}
	for to, from := range sources {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			s.t.Fatal(err)
		}
	}
	file := filepath.Join(prompts, "codeQuality.md")
	text, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	changed := bytes.Replace(text, []byte("the "), []byte("that "), 1)
	if bytes.Equal(changed, text) {
		s.t.Fatal("the prompt has not changed")
	}
	if err := os.WriteFile(file, changed, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.run(s.environ, "fit", "versus", "judge", "J", "--prompts", "prompts")
	asked := s.questions()
	for _, question := range asked {
		if !strings.HasPrefix(question, "single codeQuality") {
			s.t.Errorf("a judge was asked again: %s", question)
		}
	}
	if len(asked) == 0 {
		s.t.Error("nobody was asked with the new prompt")
	}
}

// reportsAgain: the report is a function of the directory's content; there is neither an agent nor
// a model any more.
func (s *stage) reportsAgain(robot []byte) {
	s.t.Helper()
	if err := s.server.Close(); err != nil {
		s.t.Fatal(err)
	}
	alone := []string{"HOME=" + s.t.TempDir()}
	compare := func(what, dir string) {
		s.t.Helper()
		if again := s.run(alone, "fit", "versus", "report", dir, "--robot"); !bytes.Equal(again, robot) {
			s.t.Errorf("%s the report is another: %s", what, cmp.Diff(string(robot), string(again)))
		}
	}
	compare("at once", "R")
	if err := os.Rename(filepath.Join(s.dir, "R"), filepath.Join(s.dir, "elsewhere")); err != nil {
		s.t.Fatal(err)
	}
	compare("in another place", "elsewhere")
	if err := os.RemoveAll(filepath.Join(s.dir, "elsewhere", "cache")); err != nil {
		s.t.Fatal(err)
	}
	compare("without its cache", "elsewhere")
}
