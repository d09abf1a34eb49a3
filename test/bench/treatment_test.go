package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/treatment"
	"github.com/fit-eval/fit/ledger"
)

const (
	// mostOfValid is how much longer than json.Valid, over the same bodies, the search for the
	// treatment may take. The small run of every day, on a busy machine and perhaps with the race
	// detector, may take twice that.
	mostOfValid      = 2
	mostOfSmallValid = 4
)

// TestTreatment searches records of model calls for what the model was given and what it opened,
// beside json.Valid over all bodies of the record on one core, in two ways: a conversation, whose
// requests repeat the ones before, and requests that have nothing in common but the first.
func TestTreatment(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	turns, most := 20, float64(mostOfSmallValid)
	if os.Getenv("FIT_BENCH") != "" {
		turns, most = 60, mostOfValid
	}
	pieces := benchPieces()
	for name, bodies := range map[string][][]byte{
		"a conversation":    benchRequests(t, turns, true),
		"separate requests": benchRequests(t, turns, false),
	} {
		path, size := benchRecord(t, bodies), 0
		for _, body := range bodies {
			size += len(body)
		}
		var valid, read float64
		for range 5 {
			valid = least(valid, cpuOf(t, func() {
				for _, body := range bodies {
					if !json.Valid(body) {
						t.Fatal("not JSON")
					}
				}
			}))
			read = least(read, cpuOf(t, func() {
				found, err := treatment.Read(treatment.Config{Calls: path, Pieces: pieces})
				if err != nil || found.Pieces[0].Given != ledger.GivenWhole || !*found.Pieces[1].Opened {
					t.Fatalf("%+v, %v", found, err)
				}
			}))
		}
		t.Logf("%-18s %5.1f MB · json.Valid %5.0f MB/s · treatment %5.0f MB/s · ratio %.2f", name, float64(size)/1e6,
			float64(size)/1e6/valid, float64(size)/1e6/read, read/valid)
		if read > most*valid {
			t.Errorf("%s: treatment takes %.2f times as long as json.Valid; the most is %.2f", name, read/valid, most)
		}
	}
}

// prose returns distinct lines of text as files have them.
func prose(subject string, lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "\tresult, err := %s.Step%d(ctx, \"input %d\") // keeps the order of column %d\n", subject, i, i*7, i*3)
	}
	return b.String()
}

// benchPieces returns instructions and skills as a project has them.
func benchPieces() []treatment.Piece {
	pieces := []treatment.Piece{{
		Piece: ledger.Piece{Kind: ledger.PieceInstructions, Name: "AGENTS.md"},
		Text:  prose("rules", 100),
	}}
	for i := range 10 {
		pieces = append(pieces, treatment.Piece{
			Piece: ledger.Piece{Kind: ledger.PieceSkill, Name: fmt.Sprintf("skill-%d", i)},
			Text:  fmt.Sprintf("Converts tables of kind %d. Use it for plumbus %d files.", i, i),
			Body:  prose(fmt.Sprintf("skill%d", i), 80),
		})
	}
	return pieces
}

// benchRequests returns the requests of a session. In a conversation each repeats the one before,
// and tools answer with 8 KB; separate ones hold nothing but an answer of 80 KB after the first.
func benchRequests(t *testing.T, turns int, conversation bool) [][]byte {
	t.Helper()
	type object = map[string]any
	given := prose("rules", 100)
	for _, p := range benchPieces()[1:] {
		given += "- " + p.Name + ": " + p.Text + "\n"
	}
	start := object{"role": "user", "content": []object{{"type": "text", "text": given}}}
	system, tools, lines := prose("system", 300), []object{}, 100
	for i := range 20 {
		tools = append(tools, object{"name": fmt.Sprintf("tool%d", i), "description": prose("tool", 40)})
	}
	messages := []object{start}
	if !conversation {
		system, tools, lines = "", tools[:1], 1000
	}
	var bodies [][]byte
	for turn := range turns {
		answer := prose(fmt.Sprintf("file%d", turn), lines)
		if turn == 1 {
			answer = benchPieces()[1].Body
		}
		result := object{"role": "user", "content": []object{{"type": "tool_result", "content": answer}}}
		if messages = append(messages, result); !conversation && turn > 0 {
			messages = []object{result}
		}
		body, err := json.Marshal(object{
			"model":    "m",
			"system":   system,
			"tools":    tools,
			"messages": messages,
		})
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, body)
	}
	return bodies
}

func benchRecord(t *testing.T, bodies [][]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent.calls")
	w, err := calls.Create(path, calls.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range bodies {
		call := calls.Call{
			Protocol: "anthropic",
			Path:     "/v1/messages",
			Outcome:  calls.OK,
			Tools:    20,
			Messages: 1,
		}
		if err := w.Append(call, body, []byte(`{"model":"m"}`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
