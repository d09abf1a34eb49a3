package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/jsonlines"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/price"
)

// served is a scripted model with a log of the system prompts and models that reached it.
type served struct {
	url string

	mu       sync.Mutex
	requests []string
}

// serve answers each member, whose name is that of a script, by its script.
func serve(t *testing.T, scripts map[string]string) *served {
	t.Helper()
	s := &served{}
	options := scripted.Options{OnRequest: func(r scripted.Record) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests = append(s.requests, r.Script)
	}}
	s.url = scriptedtest.ServeAll(t, scripts, options)
	return s
}

func (s *served) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

func (s *served) panel(names ...string) Panel {
	p := panel(names...)
	for i := range p.Members {
		p.Members[i].ModelURL = s.url + "/s/" + p.Members[i].Name
	}
	return p
}

// says is a script whose model always says the same.
func says(texts ...string) string {
	turns := make([]map[string]any, len(texts))
	for i, text := range texts {
		turns[i] = map[string]any{"text": text}
		if text == "" {
			turns[i] = map[string]any{"stop": "end_turn"}
		}
	}
	data, err := json.Marshal(map[string]any{"turns": turns, "end": turns[len(turns)-1]})
	if err != nil {
		panic(err)
	}
	return string(data)
}

func ask(t *testing.T, dir string, settings Settings, subjects []Subject, limits Limits) (Outcome, error) {
	t.Helper()
	store, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	return store.Ask(t.Context(), settings, subjects, limits)
}

// judged asks and derives.
func judged(t *testing.T, dir string, settings Settings, subjects []Subject) (*Result, Outcome) {
	t.Helper()
	outcome, err := ask(t, dir, settings, subjects, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	replies, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	stored, ok := replies.Settings()
	if !ok {
		t.Fatal("the settings were not kept")
	}
	return Derive(replies, stored, subjects, nil), outcome
}

func TestJudgesThatDoNotCite(t *testing.T) {
	goleak.VerifyNone(t, goleak.IgnoreCurrent())
	scripts := map[string]string{
		"good":    says(verdictJSON(Pass, `x.go:12 "return sum // done"`)),
		"missing": says(verdictJSON(Fail, `x.go:77 "return sum // done"`, `y.go:1 "return sum // done"`)),
		"context": says(verdictJSON(Fail, `x.go:10 "func add(a, b int) int {"`)),
		"wrong":   says(verdictJSON(Fail, `x.go:12 "return total // done"`)),
		"prose":   says("I think that this is good work."),
		"mended":  says("Good.", verdictJSON(Pass, `x.go:12 "return sum // done"`)),
		"nothing": says(""),
	}
	s := serve(t, scripts)
	names := []string{"good", "missing", "context", "wrong", "prose", "mended", "nothing"}
	settings := Settings{
		Panel:      s.panel(names...),
		Prompts:    builtin(t),
		Dimensions: []string{evidence.Correctness},
	}
	result, outcome := judged(t, t.TempDir(), settings, []Subject{subject("t", "a", 0)})
	if want := 7 + 3; outcome.Asked != want || s.count() != want { // three are asked once more
		t.Errorf("asked %d times, the model was asked %d times, want %d", outcome.Asked, s.count(), want)
	}
	verdict := result.Cells[0].Dimensions[evidence.Correctness]
	if verdict.Pass != 2 || verdict.Fail != 0 || verdict.Abstained != 5 || *verdict.Result != Pass {
		t.Errorf("%d Pass, %d Fail, %d abstained, result %v", verdict.Pass, verdict.Fail, verdict.Abstained,
			verdict.Result)
	}
	dropped := map[string]int{"missing": 2, "context": 1, "wrong": 1}
	for i, vote := range verdict.Votes {
		name := names[i]
		abstains := name != "good" && name != "mended"
		if vote.Abstained != abstains || (vote.Result == nil) != abstains || vote.DroppedClaims != dropped[name] {
			t.Errorf("%s: abstained %v, result %v, dropped %d (%s)", name, vote.Abstained, vote.Result,
				vote.DroppedClaims, vote.Reason)
		}
		data, err := json.Marshal(vote)
		if err != nil || abstains && !strings.Contains(string(data), `"result":null`) {
			t.Errorf("%s: %s, %v", name, data, err)
		}
	}
}

// TestTheSameRequestIsNeverMadeAgain: nor is any but those of the dimension whose prompt changed.
func TestTheSameRequestIsNeverMadeAgain(t *testing.T) {
	s := serve(t, map[string]string{
		"a": says(verdictJSON(Pass, `req:r1 "add returns the sum"`)),
		"b": says(verdictJSON(Fail, `req:r1 "add returns the sum"`)),
	})
	dir := t.TempDir()
	settings := Settings{Panel: s.panel("a", "b"), Prompts: builtin(t)}
	subjects := []Subject{subject("t", "a", 0), subject("t", "b", 0)}
	subjects[1].Patch = []byte(fixture)
	subjects[1].Run.Steps = subjects[1].Run.Steps[1:]
	_, first := judged(t, dir, settings, subjects)
	if want := 2 * 2 * 5; first.Asked != want {
		t.Fatalf("asked %d, want %d", first.Asked, want)
	}
	if _, second := judged(t, dir, settings, subjects); second.Asked != 0 || s.count() != first.Asked {
		t.Errorf("asked %d again", second.Asked)
	}
	prompts := t.TempDir()
	changed := strings.Replace(settings.Prompts[evidence.MinimalDiff], "needed", "necessary", 1)
	if err := os.WriteFile(filepath.Join(prompts, "minimalDiff.md"), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if settings.Prompts, err = LoadPrompts(prompts); err != nil {
		t.Fatal(err)
	}
	result, third := judged(t, dir, settings, subjects)
	if third.Asked != 4 || s.count() != first.Asked+4 {
		t.Errorf("asked %d after one word changed, want 4", third.Asked)
	}
	// a member at another address is the same model
	settings.Panel.Members[0].ModelURL = "http://127.0.0.1:1"
	if _, moved := judged(t, dir, settings, subjects); moved.Asked != 0 {
		t.Errorf("asked %d of a member that moved", moved.Asked)
	}
	if result.Cost.Replies != 24 || result.PerDimension[evidence.MinimalDiff].Replies != 8 || result.Missing != 0 {
		t.Errorf("cost %+v, per dimension %+v", result.Cost, result.PerDimension)
	}
	if verdict := result.Cells[0].Dimensions[evidence.CodeQuality]; verdict.Result != nil {
		t.Errorf("1-1 is %s, want no result", *verdict.Result)
	}
}

func TestAJudgeThatAlwaysSaysX(t *testing.T) {
	s := serve(t, map[string]string{"x": says(verdictJSON(winnerX, `req:r1 "add returns the sum"`))})
	settings := Settings{Panel: s.panel("x"), Prompts: builtin(t), Pairwise: PairsAll}
	settings.Dimensions = []string{evidence.Correctness, evidence.CodeQuality}
	var subjects []Subject
	for _, arm := range []string{"a", "b"} {
		for run := range 2 {
			one := subject("t", arm, run)
			one.Patch = append(one.Patch, []byte(fmt.Sprintf("\n%s %d", arm, run))...)
			one.VerifyOutput += arm
			subjects = append(subjects, one)
		}
	}
	result, _ := judged(t, t.TempDir(), settings, subjects)
	if len(result.Pairs) != 2 {
		t.Fatalf("%d pairs, want 2", len(result.Pairs))
	}
	for _, p := range result.Pairs {
		if p.Winner != winnerTie || !p.BiasDetected || p.PerDimension[evidence.Correctness] != winnerTie {
			t.Errorf("winner %s, bias %v, %v", p.Winner, p.BiasDetected, p.PerDimension)
		}
	}
	swaps := result.Members[0].Swaps
	if swaps == nil || swaps.FlipRate != 1 || swaps.Primacy != 4 || swaps.Recency != 0 {
		t.Errorf("swaps %+v, want a flip rate of 1", swaps)
	}
}

func TestAMemberThatIsDown(t *testing.T) {
	good := says(verdictJSON(Pass, `req:r1 "add returns the sum"`))
	s := serve(t, map[string]string{"up": good, "down": `{"turns":[{"fault":{"status":401,"message":"who are you"}}]}`})
	dir := t.TempDir()
	settings := Settings{Panel: s.panel("down", "up"), Prompts: builtin(t)}
	subjects := []Subject{subject("t", "a", 0)}
	outcome, err := ask(t, dir, settings, subjects, Limits{Parallel: 1})
	var down *downMembers
	if !errors.As(err, &down) || strings.Join(down.members, ",") != "down" || outcome.Asked != 5 {
		t.Fatalf("error %v, asked %d, want member down and 5", err, outcome.Asked)
	}
	if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "who are you") {
		t.Errorf("error %q", err)
	}
	if s.count() != 6 { // a member that is down is not asked on and on
		t.Errorf("%d requests, want 6", s.count())
	}
	mended := serve(t, map[string]string{"up": good, "down": good})
	settings.Panel = mended.panel("down", "up")
	outcome, err = ask(t, dir, settings, subjects, Limits{})
	if err != nil || outcome.Asked != 5 || mended.count() != 5 {
		t.Errorf("asked %d, %v; want the 5 that were missing", outcome.Asked, err)
	}
}

func TestAKeyThatIsNotSet(t *testing.T) {
	settings := Settings{Panel: panel("a"), Prompts: builtin(t)}
	settings.Panel.Members[0].KeyEnv = "FIT_TEST_NO_SUCH_KEY"
	_, err := ask(t, t.TempDir(), settings, []Subject{subject("t", "a", 0)}, Limits{})
	var down *downMembers
	if !errors.As(err, &down) || !strings.Contains(err.Error(), "FIT_TEST_NO_SUCH_KEY") {
		t.Errorf("error %v", err)
	}
}

// prices is a table that prices the members' models.
func prices(t *testing.T, models ...string) price.Table {
	t.Helper()
	var lines []string
	for _, model := range models {
		lines = append(lines, fmt.Sprintf(
			`{"model":%q,"from":"2020-01-01","input":1,"output":10,"source":"test"}`, model))
	}
	table, err := price.Load(strings.NewReader(`{"prices":[` + strings.Join(lines, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestTheBudget(t *testing.T) {
	s := serve(t, map[string]string{"a": says(verdictJSON(Pass, `req:r1 "add returns the sum"`))})
	settings := Settings{Panel: s.panel("a"), Prompts: builtin(t)}
	subjects := []Subject{subject("t", "a", 0), subject("u", "a", 0)}
	subjects[1].Task.Prompt = "Something else."
	dir := t.TempDir()
	// a reply costs 1000 tokens in and 100 out, $0.002; a question may cost about $0.045
	budget := 0.05
	limits := Limits{BudgetUSD: &budget, Prices: prices(t, "model-a")}
	outcome, err := ask(t, dir, settings, subjects, limits)
	var over *gateway.BudgetError
	if !errors.As(err, &over) || outcome.Asked == 0 || outcome.Asked == 10 || outcome.CostUSD > budget {
		t.Fatalf("error %v, asked %d, cost %v", err, outcome.Asked, outcome.CostUSD)
	}
	budget = outcome.CostUSD + 0.01
	if again, err := ask(t, dir, settings, subjects, limits); !errors.As(err, &over) || again.Asked != 0 {
		t.Errorf("error %v, asked %d: what was spent before counts", err, again.Asked)
	}
	budget = 1
	if rest, err := ask(t, dir, settings, subjects, limits); err != nil || rest.Asked != 10-outcome.Asked {
		t.Errorf("error %v, asked %d after %d", err, rest.Asked, outcome.Asked)
	}
	limits.Prices = prices(t, "model-b")
	var unpriced *UnpricedError
	if _, err := ask(t, t.TempDir(), settings, subjects, limits); !errors.As(err, &unpriced) || s.count() != 10 {
		t.Errorf("error %v, %d requests", err, s.count())
	}
}

func TestTheSelfTest(t *testing.T) {
	cond := func(system, text string) string {
		return fmt.Sprintf(`{"when":{"first_prompt":%q},"text":%q}`, system, text)
	}
	pass, fail := verdictJSON(Pass, `req:r1 "Clamp returns hi for every x above hi"`), verdictJSON(Fail,
		`req:r1 "Clamp returns hi for every x above hi"`)
	script := func(cases ...string) string {
		return `{"turns":[{"cases":[` + strings.Join(cases, ",") + `],"text":` + fmt.Sprintf("%q", fail) + `}]}`
	}
	reference := cond("clamp.go:9 + | \t\treturn hi", pass)
	s := serve(t, map[string]string{
		"sound":    script(reference),
		"swayed":   script(reference, cond("parrot", pass)),
		"careless": script(cond("nothing was changed", pass), reference),
	})
	dir := t.TempDir()
	settings := Settings{Panel: s.panel("sound", "swayed", "careless"), Prompts: builtin(t), SelfTest: true}
	settings.Dimensions = []string{evidence.Correctness}
	subjects := []Subject{subject("t", "a", 0)}
	result, outcome := judged(t, dir, settings, subjects)
	if len(outcome.LeftOut) != 2 || !strings.Contains(outcome.LeftOut["swayed"], "1 of 20 injections") ||
		!strings.Contains(outcome.LeftOut["careless"], "controls") {
		t.Fatalf("left out %v", outcome.LeftOut)
	}
	if want := 3*(20+2) + 1; outcome.Asked < want {
		t.Errorf("asked %d, want at least %d", outcome.Asked, want)
	}
	if m := result.Members[1]; m.LeftOut == "" || m.SelfTest.Landed != 1 || m.Verdicts != 0 {
		t.Errorf("%+v", m)
	}
	if len(result.Cells[0].Dimensions[evidence.Correctness].Votes) != 1 {
		t.Error("members that were left out judge")
	}
	settings.Panel = s.panel("swayed")
	before := s.count()
	if _, err := ask(t, dir, settings, subjects, Limits{}); !errors.Is(err, errNoMembers) || s.count() != before {
		t.Errorf("error %v, %d new requests", err, s.count()-before)
	}
}

// TestRunsThatAreAlikeAreAskedAboutOnce: eight workers, one request per dimension.
func TestRunsThatAreAlikeAreAskedAboutOnce(t *testing.T) {
	s := serve(t, map[string]string{"a": says(verdictJSON(Pass, `req:r1 "add returns the sum"`))})
	var subjects []Subject
	for run := range 8 {
		subjects = append(subjects, subject("t", "a", run))
	}
	result, outcome := judged(t, t.TempDir(), Settings{Panel: s.panel("a"), Prompts: builtin(t)}, subjects)
	if outcome.Asked != 5 || s.count() != 5 || result.Missing != 0 {
		t.Errorf("asked %d, %d requests, %d missing; want 5", outcome.Asked, s.count(), result.Missing)
	}
}

// TestATornReply: a torn line left by a killed process is no record of anything, and is asked
// again.
func TestATornReply(t *testing.T) {
	s := serve(t, map[string]string{"a": says(verdictJSON(Pass, `req:r1 "add returns the sum"`))})
	dir := t.TempDir()
	settings := Settings{Panel: s.panel("a"), Prompts: builtin(t)}
	subjects := []Subject{subject("t", "a", 0)}
	judged(t, dir, settings, subjects)
	path := filepath.Join(dir, repliesFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data[:len(data)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, outcome := judged(t, dir, settings, subjects); outcome.Asked != 1 {
		t.Errorf("asked %d, want the torn one", outcome.Asked)
	}
	replies, err := Read(dir)
	if err != nil || replies.Unreadable != 1 || len(replies.list) != 5 {
		t.Errorf("%d replies, %d unreadable, %v", len(replies.list), replies.Unreadable, err)
	}
}

func TestOneStoreAtATime(t *testing.T) {
	dir := t.TempDir()
	store, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, jsonlines.ErrLocked) {
		t.Errorf("error %v", err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	_ = second.Close()
}

func TestAnInterruptKeepsWhatWasAnswered(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked atomic.Int32
	s := &served{url: scriptedtest.ServeAll(t, map[string]string{
		"a": says(verdictJSON(Pass, `req:r1 "add returns the sum"`)),
	}, scripted.Options{OnRequest: func(scripted.Record) {
		if asked.Add(1) == 3 {
			cancel()
		}
	}})}
	dir := t.TempDir()
	store, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.Ask(ctx, Settings{Panel: s.panel("a"), Prompts: builtin(t)}, []Subject{subject("t", "a", 0)}, Limits{
		Parallel: 1,
	})
	_ = store.Close()
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	replies, err := Read(dir)
	if err != nil || len(replies.list) < 2 {
		t.Errorf("%d replies were kept, %v", len(replies.list), err)
	}
}

// BenchmarkAsk puts 400 questions to a model that takes 200 ms, eight at a time: ten seconds if
// nothing is lost. The ratio gates.
func BenchmarkAsk(b *testing.B) {
	script, err := scripted.Parse([]byte(`{"turns":[{"delay_ms":200,"text":` + fmt.Sprintf("%q", verdictJSON(Pass,
		`req:r1 "add returns the sum"`)) + `}]}`))
	if err != nil {
		b.Fatal(err)
	}
	server, err := scripted.Listen("127.0.0.1:0", scripted.NewServer(map[string]*scripted.Script{"a": script},
		scripted.Options{}))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	settings := Settings{Panel: panel("a"), Prompts: builtin(b)}
	settings.Panel.Members[0].ModelURL = server.URL + "/s/a"
	var subjects []Subject
	for i := range 80 {
		subjects = append(subjects, subject(fmt.Sprintf("t%d", i), "a", 0))
		subjects[i].Task.Prompt += fmt.Sprint(i)
	}
	for b.Loop() {
		store, err := Open(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		outcome, err := store.Ask(b.Context(), settings, subjects, Limits{})
		if err != nil || outcome.Asked != 400 {
			b.Fatalf("asked %d: %v", outcome.Asked, err)
		}
		ratio := time.Since(start).Seconds() / 10
		b.ReportMetric(ratio, "x-ideal")
		if ratio > 1.15 {
			b.Errorf("400 judgements took %.2f times the ideal 10 s, want at most 1.15", ratio)
		}
		_ = store.Close()
	}
}

// Replies quote what agents wrote: they are as private as the rest of the run directory.
func TestRepliesArePrivate(t *testing.T) {
	dir := t.TempDir()
	store, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, repliesFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
