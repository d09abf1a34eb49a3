package teams

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/trace"
)

// careful is a participant that does what a careful agent would do after an interruption: it skips
// what its conversation or its prompt says is done, and where a command is listed without a
// result it looks before it runs the command again, until it has seen the result.
func careful(name string, asks ...int) string {
	step := func(n int, next string) string {
		text := fmt.Sprintf("step-%d-%s", n, name)
		return fmt.Sprintf(`
    {"label":"step%[1]d","cases":[{"when":{"any_prompt":"%[2]s"},"goto":"look%[1]d"}],"calls":[{"bash":"echo %[2]s | tee -a ran.txt"}]},
    {"label":"look%[1]d","cases":[
      {"when":{"any":[{"any_result":"%[2]s"},{"any_prompt":"re:returned: [^\\n]*%[2]s"}]},"goto":"%[3]s"}],
      "calls":[{"bash":"grep -x %[2]s ran.txt || echo %[2]s | tee -a ran.txt"}]},
    {"goto":"look%[1]d"},`, n, text, next)
	}
	answer := func(n, ask int, next string) string {
		return fmt.Sprintf(`
    {"label":"answer%[1]d","cases":[{"when":{"any":[{"any_result":"answer to ask #%[3]d"},{"any_prompt":"you answered (ask #%[3]d)"}]},"goto":"%[4]s"}],
      "calls":[{"mcp":"orchestration/Answer","input":{"message":"answer %[1]d of %[2]s"}}]},
    {"goto":"answer%[1]d"},`, n, name, ask, next)
	}
	return `{"name":"` + name + `","when":{"system":"You are ` + name + `."},"turns":[` +
		step(1, "step2") + step(2, "answer1") + answer(1, asks[0], "rest") + `
    {"label":"rest","cases":[{"when":{"any_prompt":"Second round"},"goto":"step3"}],"text":"I rest."},
    {"goto":"rest"},` +
		step(3, "answer2") + answer(2, asks[1], "done") + `
    {"label":"done","text":"Done."},
    {"goto":"done"}]}`
}

// twoRounds is a facilitator with two questions to everybody.
var twoRounds = `{"scenarios":[
  {"name":"facilitator","when":{"system":"You chair a session"},"turns":[
    {"label":"first","cases":[{"when":{"any":[{"any_result":"[1,2]"},{"any_prompt":"you asked bob (ask #2)"}]},"goto":"wait1"}],
      "calls":[{"mcp":"orchestration/Ask","input":{"question":"First round?"}}]},
    {"goto":"first"},
    {"label":"wait1","cases":[{"when":{"all":[{"any_prompt":"[answer#1]"},{"any_prompt":"[answer#2]"}]},"goto":"second"}],"text":"I wait."},
    {"goto":"wait1"},
    {"label":"second","cases":[{"when":{"any":[{"any_result":"[3,4]"},{"any_prompt":"you asked bob (ask #4)"}]},"goto":"wait2"}],
      "calls":[{"mcp":"orchestration/Ask","input":{"question":"Second round?"}}]},
    {"goto":"second"},
    {"label":"wait2","cases":[{"when":{"all":[{"any_prompt":"[answer#3]"},{"any_prompt":"[answer#4]"}]},"goto":"end"}],"text":"I wait."},
    {"goto":"wait2"},
    {"label":"end","cases":[{"when":{"any_result":"The session is over"},"goto":"over"}],
      "calls":[{"mcp":"orchestration/Conclude","input":{"verdict":"success","summary":"Both rounds are over."}}]},
    {"goto":"end"},
    {"label":"over","text":"Over."},
    {"goto":"over"}]},
  ` + careful("alice", 1, 3) + `,
  ` + careful("bob", 2, 4) + `]}`

// TestKillsChangeNothing kills sessions of each vendor at random lines of the trace and resumes
// them, again and again. Whatever the moment, the outcome is the same, no message is sent twice and
// no command is run twice. FIT_SOAK_KILLS sets the number of kills; without it the vendor whose
// program starts the quickest is killed a few times, and the others are killed once, in
// TestASessionOfVendorsSurvivesAKill.
func TestKillsChangeNothing(t *testing.T) {
	kills, vendors := 2, []string{"codex"}
	if soak := os.Getenv("FIT_SOAK_KILLS"); soak != "" {
		var err error
		if kills, err = strconv.Atoi(soak); err != nil {
			t.Fatal(err)
		}
		vendors = []string{"claude-code", "codex", "pi-agent"}
	}
	for _, vendor := range vendors {
		t.Run(vendor, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			for survived := 0; survived < kills; {
				survived += survive(t, vendor, random, kills-survived)
			}
		})
	}
}

// survive holds one session that is killed at most so many times, and returns how often it was.
func survive(t *testing.T, vendor string, random *rand.Rand, most int) int {
	t.Helper()
	m := gather(t, twoRounds, vendor)
	m.write(t, ".claude/agents/alice.md", "You are alice.\n")
	m.write(t, ".claude/agents/bob.md", "You are bob.\n")
	args := []string{
		"facilitate", "--agent", "builtin", "--lead-agent", vendor, "--lead-model", "scripted-model",
		"--agent-profiles", "alice=" + vendor + ":gpt-5.5,bob", "--task-text", "Hold two rounds.",
		"--output", "trace.ndjson", "--session-timeout", patience,
	}
	var at []int // the lines after which it was killed
	for len(at) < most && m.killed(t, args, m.lines()+1+random.IntN(40)) {
		at = append(at, m.lines())
		args = []string{"resume", "trace.ndjson"}
	}
	t.Logf("killed after lines %v", at)
	if !m.over() {
		m.hold(t, args...)
	}
	m.checkRounds(t)
	return len(at)
}

// killed runs the program until its trace has so many lines, kills it, and reports whether it came
// to that.
func (m *meeting) killed(t *testing.T, args []string, lines int) bool {
	t.Helper()
	victim := exec.CommandContext(t.Context(), os.Args[0])
	victim.Args = append([]string{"fit-harness"}, args...)
	victim.Dir, victim.Env = m.dir, m.asProgram(t)
	var stderr bytes.Buffer
	victim.Stderr = &stderr
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- victim.Wait() }()
	growing := m.follow()
	defer growing.close()
	for growing.lines() < lines {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v: %v\n%s\n%s", args, err, stderr.String(), m.tail())
			}
			return false
		case <-time.After(time.Millisecond): // another process writes the trace; there is nothing to wait on
		}
	}
	// It may have written its last line and left by now.
	if err := victim.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-ended
	return !m.over()
}

// lines is the number of whole lines of the trace so far.
func (m *meeting) lines() int {
	data, _ := os.ReadFile(filepath.Join(m.dir, "trace.ndjson"))
	return bytes.Count(data, []byte("\n"))
}

// follower counts the lines of a file that grows, and reads each only once.
type follower struct {
	path  string
	file  *os.File // nil: there is none yet
	count int
}

func (m *meeting) follow() *follower { return &follower{path: filepath.Join(m.dir, "trace.ndjson")} }

func (f *follower) lines() int {
	if f.file == nil {
		f.file, _ = os.Open(f.path) // it is looked for again
	}
	if f.file != nil {
		data, _ := io.ReadAll(f.file)
		f.count += bytes.Count(data, []byte("\n"))
	}
	return f.count
}

func (f *follower) close() {
	if f.file != nil {
		_ = f.file.Close()
	}
}

// over reports whether the trace has its last line.
func (m *meeting) over() bool {
	data, _ := os.ReadFile(filepath.Join(m.dir, "trace.ndjson"))
	return bytes.Contains(data, []byte(`"event":{"type":"summary"`))
}

// checkRounds looks for the outcome that the session has when nobody kills it.
func (m *meeting) checkRounds(t *testing.T) {
	t.Helper()
	m.check(t, nil, map[string]string{
		"alice": "answer 1 of aliceanswer 2 of alice",
		"bob":   "answer 1 of bobanswer 2 of bob",
	})
	asked := map[string]int{}
	for _, l := range m.trace(t) {
		if l.Type == trace.TypeMessage && l.Kind == "ask" {
			asked[l.Text+" "+l.To]++
		}
	}
	for _, ask := range []string{"First round? alice", "First round? bob", "Second round? alice", "Second round? bob"} {
		if asked[ask] != 1 || len(asked) != 4 {
			t.Errorf("asked: %v", asked)
			break
		}
	}
	data, _ := os.ReadFile(filepath.Join(m.dir, "ran.txt"))
	ran := strings.Fields(string(data))
	slices.Sort(ran)
	if want := []string{
		"step-1-alice", "step-1-bob", "step-2-alice", "step-2-bob", "step-3-alice", "step-3-bob",
	}; !slices.Equal(ran, want) {
		t.Errorf("these commands were run: %v", ran)
	}
}
