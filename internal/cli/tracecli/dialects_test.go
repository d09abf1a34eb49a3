package tracecli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/internal/testenv"
)

// ask runs a verb and returns what it printed.
func ask(t *testing.T, args ...string) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	con := &console.Console{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
	if code := run(con, args); code != 0 {
		t.Fatalf("fit-trace %s: exit code %d: %s", strings.Join(args, " "), code, errs.String())
	}
	return out.Bytes()
}

// wrapped writes recordings as the lanes of one session.
func wrapped(t *testing.T, lanes ...[2]string) string {
	t.Helper()
	var file bytes.Buffer
	seq := 0
	emit := func(source, event string) {
		fmt.Fprintf(&file, `{"source":%q,"seq":%d,"ts":%d,"event":%s}`+"\n", source, seq, 1767225600000+int64(seq)*100,
			event)
		seq++
	}
	emit("orchestrator", `{"type":"session_start"}`)
	var streams [][]string
	for _, lane := range lanes {
		emit("orchestrator", fmt.Sprintf(`{"type":"agent_start","agent":%q}`, lane[0]))
		raw, err := os.ReadFile(filepath.Join("testdata", "recordings", lane[1]+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, strings.Split(strings.TrimSpace(string(raw)), "\n"))
	}
	for line := 0; ; line++ { // the lanes take turns, as they would
		left := false
		for i, stream := range streams {
			if line < len(stream) {
				emit(lanes[i][0], stream[line])
				left = true
			}
		}
		if !left {
			break
		}
	}
	emit("orchestrator", `{"type":"summary","success":true,"verdict":"success","turns":1}`)
	path := filepath.Join(t.TempDir(), "session.ndjson")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// shape is the keys of an answer in order, those of the first element of a list.
func shape(t *testing.T, raw []byte) []string {
	t.Helper()
	raw = bytes.TrimSpace(raw)
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		if len(list) == 0 {
			return nil
		}
		raw = list[0]
	}
	var keys []string
	jsonenc.EachMember(raw, func(key string, _ []byte) { keys = append(keys, key) })
	return keys
}

// Codex reports the tokens of a whole conversation, which cannot be split over its tools.
func TestToolsWithoutTokensAreSaidToBeMissing(t *testing.T) {
	for lane, want := range map[string]string{
		"codex-a-happy":  ": the tools of agent are missing: the agent does not report tokens by message\n",
		"pi-a-happy":     "",
		"stream-a-happy": "",
	} {
		t.Run(lane, func(t *testing.T) {
			path := wrapped(t, [2]string{"agent", lane})
			if want != "" {
				want = path + want
			}
			var out, errs bytes.Buffer
			con := &console.Console{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
			code := run(con, []string{"stats", "--by-tool", path})
			said := strings.ReplaceAll(errs.String(), path+": "+query.CutOff+"\n", "")
			if code != 0 || said != want {
				t.Errorf("exit code %d, %q, want %q", code, said, want)
			}
		})
	}
}

func TestEveryDialectGivesTheSameShapes(t *testing.T) {
	verbs := [][]string{
		{"stats", "--summary"},
		{"stats", "--by-tool"},
		{"filter", "--role", "tool_result"},
		{"filter", "--role", "assistant"},
	}
	for _, args := range questions("", "") {
		if len(args) == 2 && !slices.Contains([]string{"filter", "init", "validate"}, args[0]) {
			verbs = append(verbs, args[:1]) // what agents said first is their own
		}
	}
	stream := wrapped(t, [2]string{"agent", "stream-b-tool-failure"})
	optional := map[string]bool{
		"durationMs": true, "parentToolUseId": true, "isError": true, "unknown": true,
		"input": true,
	}
	for _, recording := range []string{"codex-b-tool-failure", "pi-b-tool-failure"} {
		foreign := wrapped(t, [2]string{"agent", recording})
		for _, verb := range verbs {
			name := recording + " " + strings.Join(verb, " ")
			t.Run(name, func(t *testing.T) {
				want := shape(t, ask(t, append(verb, "--format", "json", stream)...))
				got := shape(t, ask(t, append(verb, "--format", "json", foreign)...))
				if verb[0] == "head" || verb[0] == "tail" { // the first turn may be of any role
					want, got = want[:3], got[:3]
				}
				keep := func(keys []string) []string {
					var kept []string
					for _, key := range keys {
						if !optional[key] {
							kept = append(kept, key)
						}
					}
					return kept
				}
				if diff := cmp.Diff(keep(want), keep(got)); diff != "" {
					t.Errorf("keys (-stream +%s):\n%s", recording, diff)
				}
			})
		}
	}
}

func TestAMixedTeamIsReadAsOne(t *testing.T) {
	team := wrapped(t, [2]string{"alice", "stream-b-tool-failure"}, [2]string{"bob", "codex-b-tool-failure"},
		[2]string{"carol", "pi-b-tool-failure"})
	turns := 0
	for _, lane := range []string{"alice", "bob", "carol"} {
		text := strings.TrimSpace(string(ask(t, "count", "--lane", lane, team)))
		n, err := strconv.Atoi(text)
		if err != nil || n == 0 {
			t.Errorf("%s has %q turns", lane, text)
		}
		turns += n
	}
	if got := strings.TrimSpace(string(ask(t, "count", team))); got != strconv.Itoa(turns) {
		t.Errorf("%s turns in all, %d by lane", got, turns)
	}
	var calls []struct {
		Source string
		Name   string
		Result *struct{ IsError bool }
	}
	if err := json.Unmarshal(ask(t, "tool-calls", "--format", "json", team), &calls); err != nil {
		t.Fatal(err)
	}
	failed := map[string]int{}
	for _, c := range calls {
		if c.Result != nil && c.Result.IsError {
			failed[c.Source]++
		}
	}
	for _, lane := range []string{"alice", "bob", "carol"} {
		if failed[lane] == 0 {
			t.Errorf("no failed call of %s: %v", lane, failed)
		}
	}
	var commands []struct{ Source, Command string }
	if err := json.Unmarshal(ask(t, "commands", "--match", "go test", "--format", "json", team),
		&commands); err != nil {
		t.Fatal(err)
	}
	testers := map[string]bool{}
	for _, c := range commands {
		testers[c.Source] = true
	}
	if len(testers) != 3 {
		t.Errorf("all three ran the tests, but commands shows %v", testers)
	}
	if hits := string(ask(t, "search", team, "Recovered and fixed")); strings.Count(hits, "Recovered and fixed") != 3 {
		t.Errorf("hits:\n%s", hits)
	}
	if out := string(ask(t, "sql", team, "select lane, dialect from lanes order by 1")); !strings.Contains(out,
		"bob\tcodex-exec") || !strings.Contains(out, "carol\tpi-") {
		t.Errorf("lanes:\n%s", out)
	}
}

// TestTheNumbersOfOtherDialectsAgree computes the totals with jq by the rules of the agents: codex
// counts by thread and from its beginning, so that the last report counts; pi counts by message.
func TestTheNumbersOfOtherDialectsAgree(t *testing.T) {
	jq := testenv.NeedTool(t, "jq")
	for recording, program := range map[string]string{
		"codex-a-happy": `[inputs | select(.type == "turn.completed") | .usage] | last
			| [.input_tokens - .cached_input_tokens - .cache_write_input_tokens, .output_tokens, .cached_input_tokens, .cache_write_input_tokens, 0]`,
		"codex-b-tool-failure": `[inputs | select(.type == "turn.completed") | .usage] | last
			| [.input_tokens - .cached_input_tokens - .cache_write_input_tokens, .output_tokens, .cached_input_tokens, .cache_write_input_tokens, 0]`,
		"pi-a-happy": `[inputs | select(.type == "message_end" and .message.role == "assistant") | .message.usage]
			| [(map(.input) | add), (map(.output) | add), (map(.cacheRead) | add), (map(.cacheWrite) | add), (map(.cost.total) | add)]`,
		"pi-b-tool-failure": `[inputs | select(.type == "message_end" and .message.role == "assistant") | .message.usage]
			| [(map(.input) | add), (map(.output) | add), (map(.cacheRead) | add), (map(.cacheWrite) | add), (map(.cost.total) | add)]`,
	} {
		t.Run(recording, func(t *testing.T) {
			out, err := exec.Command(jq, "-n", "-c", program,
				filepath.Join("testdata", "recordings", recording+".jsonl")).Output()
			if err != nil {
				t.Fatal(err)
			}
			var want [5]float64
			if err := json.Unmarshal(out, &want); err != nil {
				t.Fatal(err)
			}
			var stats struct {
				Totals struct {
					Input         float64  `json:"inputTokens"`
					Output        float64  `json:"outputTokens"`
					CacheRead     float64  `json:"cacheReadInputTokens"`
					CacheCreation float64  `json:"cacheCreationInputTokens"`
					Cost          *float64 `json:"totalCostUsd"`
				}
			}
			trace := wrapped(t, [2]string{"agent", recording})
			if err := json.Unmarshal(ask(t, "stats", "--format", "json", trace), &stats); err != nil {
				t.Fatal(err)
			}
			got := stats.Totals
			if [4]float64{got.Input, got.Output, got.CacheRead, got.CacheCreation} != [4]float64(want[:4]) {
				t.Errorf("tokens %+v, jq says %v", got, want)
			}
			var cost struct {
				Total *float64 `json:"totalCostUsd"`
			}
			if err := json.Unmarshal(ask(t, "cost", trace), &cost); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(recording, "codex") { // no price is reported, and the model is not named
				if got.Cost != nil || cost.Total != nil {
					t.Errorf("a cost out of nothing: %v %v", got.Cost, cost.Total)
				}
				return
			}
			if got.Cost == nil || math.Abs(*got.Cost-want[4]) > 1e-12 || cost.Total == nil ||
				math.Abs(*cost.Total-want[4]) > 1e-12 {
				t.Errorf("cost %v and %v, jq says %v", got.Cost, cost.Total, want[4])
			}
		})
	}
}
