package gateway

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fit-eval/fit/internal/document"
)

var update = flag.Bool("update", false, "write the published schema")

// The published schema is the one that is made from the structs.
func TestTheSchemaOfFaultPlansIsCurrent(t *testing.T) {
	want, err := document.SchemaOf("fault plan", faultPlan{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "..", "docs", "schema", "faults.schema.json")
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != string(want) {
		t.Errorf("%s is not what the structs say (%v): run go test ./internal/gateway -update", path, err)
	}
}

func loadFaults(t *testing.T, plan string) (*Faults, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(path, []byte(plan), 0o600); err != nil {
		t.Fatal(err)
	}
	faults, err := LoadFaults(path)
	if err != nil {
		err = errors.New(strings.ReplaceAll(err.Error(), filepath.Dir(path)+"/", ""))
	}
	return faults, err
}

const samplePlan = `seed: 7
faults:
  - {kind: rate-limit, chance: 0.1, burst: 3, retryAfterSeconds: 2}
  - {kind: server-error, chance: 0.1, status: 503}
  - {kind: cut-stream, chance: 0.1, afterEvents: 5}
  - {kind: slow-tokens, chance: 0.1, delayMs: 50}
  - {kind: truncated-json, chance: 0.1}
  - {kind: wrong-usage, chance: 0.1}
`

func TestTroubleDependsOnTheSeedTheTaskAndTheRun(t *testing.T) {
	faults, err := loadFaults(t, samplePlan)
	if err != nil {
		t.Fatal(err)
	}
	again, err := loadFaults(t, samplePlan)
	if err != nil {
		t.Fatal(err)
	}
	other, err := loadFaults(t, strings.Replace(samplePlan, "seed: 7", "seed: 8", 1))
	if err != nil {
		t.Fatal(err)
	}
	if faults.Digest() != again.Digest() || faults.Digest() == other.Digest() {
		t.Errorf("digests %s, %s, %s", faults.Digest(), again.Digest(), other.Digest())
	}
	kinds, differ, differSeed := map[string]int{}, 0, 0
	const n = 1500
	for i := range n {
		fault := faults.Draw("task/0", i)
		kinds[fault.Kind]++
		if fault != again.Draw("task/0", i) {
			t.Fatal("the same call meets other trouble the second time")
		}
		if fault != faults.Draw("task/1", i) {
			differ++
		}
		if fault != other.Draw("task/0", i) {
			differSeed++
		}
	}
	if differ < n/4 || differSeed < n/4 {
		t.Errorf("%d calls differ in another run, %d with another seed", differ, differSeed)
	}
	// a burst of three begins with a tenth of the calls, so 1 − 0.9³ meet one
	if share := float64(kinds[faultRateLimit]) / n; share < 0.24 || share > 0.30 {
		t.Errorf("%.3f of the calls are in a burst, want 0.271", share)
	}
	if share := float64(kinds[faultServerError]) / n; share < 0.06 || share > 0.09 {
		t.Errorf("%.3f of the calls meet an error of the server, want 0.073", share)
	}
	if len(kinds) != 7 {
		t.Errorf("kinds %v", kinds)
	}
	if none := (*Faults)(nil).Draw("task/0", 0); none != (Fault{}) {
		t.Errorf("no plan draws %v", none)
	}
}

func TestMistakesInAFaultPlanAreNamedWithTheirLine(t *testing.T) {
	for plan, want := range map[string]string{
		"faults:\n  - {kind: flood, chance: 1}\n":                        "plan.yaml:2:12: ",
		"faults:\n  - {kind: cut-stream}\n":                              "plan.yaml:2:",
		"faults:\n  - {kind: cut-stream, chance: 2}\n":                   "plan.yaml:2:",
		"faults:\n  - kind: cut-stream\n    chance: 1\n    delayMs: 5\n": "plan.yaml:4:14: faults.0.delayMs: delayMs does not apply to cut-stream; it is for slow-tokens",
		"faults: []\n":             "the plan has no faults",
		"seed: 1\n":                "faults",
		"sede: 1\nfaults: []\n":    "plan.yaml:1:1",
		"faults:\n  - {kind: [}\n": "plan.yaml:2:",
		"faults:\n  - {kind: server-error, chance: 1, status: 404}\n": "plan.yaml:2:",
	} {
		t.Run(plan, func(t *testing.T) {
			if _, err := loadFaults(t, plan); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", plan, err, want)
			}
		})
	}
}

// reply is five events of a stream, as an upstream sends them in pieces that know no events.
func passThrough(t *testing.T, fault Fault, kind string, pieces ...string) (string, error) {
	t.Helper()
	recorder := httptest.NewRecorder()
	w := &faultWriter{ResponseWriter: recorder, ctx: t.Context(), fault: fault}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", "1")
	w.WriteHeader(http.StatusOK)
	for _, piece := range pieces {
		if _, err := w.Write([]byte(piece)); err != nil {
			return recorder.Body.String(), err
		}
	}
	err := w.end()
	if recorder.Result().Header.Get("Content-Length") != "" {
		t.Error("the length of the reply is not what it was")
	}
	return recorder.Body.String(), err
}

func TestRepliesGoWrongAsThePlanSays(t *testing.T) {
	events := []string{"data: {\"a\":1}\n\nda", "ta: {\"b\":2}\n", "\ndata: {\"usage\":{\"output_tokens\": 7}}\n\n"}
	const stream, whole = "text/event-stream; charset=utf-8", "application/json"
	for name, tt := range map[string]struct {
		fault  Fault
		kind   string
		pieces []string
		want   string
		err    error
	}{
		"cut": {
			Fault{Kind: faultCutStream, After: 1}, stream, events, "data: {\"a\":1}\n\n", errFault,
		},
		"cut whole": {
			Fault{Kind: faultCutStream, After: 1}, whole, []string{`{"a":1}!`}, `{"a"`, errFault,
		},
		"truncated": {
			Fault{Kind: faultTruncatedJSON, After: 1},
			stream, events,
			"data: {\"a\":1}\n\ndata: {\"b\"\n\ndata: {\"usage\":{\"output_tokens\": 7}}\n\n", nil,
		},
		"truncated whole": {
			Fault{Kind: faultTruncatedJSON}, whole, []string{`{"a":`, `1}!`}, `{"a"`, nil,
		},
		"usage": {
			Fault{Kind: faultWrongUsage, Factor: 10},
			stream, events,
			"data: {\"a\":1}\n\ndata: {\"b\":2}\n\ndata: {\"usage\":{\"output_tokens\": 70}}\n\n", nil,
		},
		"usage whole": {
			Fault{Kind: faultWrongUsage, Factor: 0.5},
			whole,
			[]string{`{"usage":{"prompt_tokens":10,"cache_read_input_tokens":4,"max_tokens":9}}`},
			`{"usage":{"prompt_tokens":5,"cache_read_input_tokens":2,"max_tokens":9}}`, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := passThrough(t, tt.fault, tt.kind, tt.pieces...)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("got %q, %v\nwant %q, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

func TestSlowTokensComeLateAndWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var events []string
		for i := range 5 {
			events = append(events, fmt.Sprintf("data: %d\n\n", i))
		}
		got, err := passThrough(t, Fault{Kind: faultSlowTokens, Delay: time.Second}, "text/event-stream", events...)
		if err != nil || got != strings.Join(events, "") || time.Since(began) != 5*time.Second {
			t.Errorf("%q, %v after %s", got, err, time.Since(began))
		}
	})
}
