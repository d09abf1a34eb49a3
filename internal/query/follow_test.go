package query

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fit-eval/fit/trace"
)

// growing is a file that somebody writes to: each read gives the next piece, an empty piece means
// that there is nothing new yet.
type growing struct{ pieces []string }

func (g *growing) Read(p []byte) (int, error) {
	if len(g.pieces) == 0 || g.pieces[0] == "" {
		if len(g.pieces) > 0 {
			g.pieces = g.pieces[1:]
		}
		return 0, io.EOF
	}
	n := copy(p, g.pieces[0])
	g.pieces[0] = g.pieces[0][n:]
	if g.pieces[0] == "" {
		g.pieces = g.pieces[1:]
	}
	return n, nil
}

func TestFollowShowsWholeLinesUntilTheSummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := enveloped("a", 0, prompt), enveloped("b", 1, sayDone)
		file := &growing{[]string{
			first[:10], "", "", first[10:] + "\njunk\n", "",
			second + "\n" + enveloped("orchestrator", 2, `{"type":"summary"}`)[:9], "", enveloped("orchestrator", 2,
				`{"type":"summary"}`)[9:] + "\nnever read",
		}}
		var lanes []string
		f := Follower{In: file, Interval: time.Second, Lanes: []string{"a"}}
		start := time.Now()
		if err := f.Run(context.Background(),
			func(env trace.Envelope) { lanes = append(lanes, env.Source) }); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(lanes, " "); got != "a orchestrator" {
			t.Errorf("shown %q", got)
		}
		if waited := time.Since(start); waited != 4*time.Second {
			t.Errorf("waited %s, want one interval for each time there was nothing new", waited)
		}
	})
}

func TestFollowEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		f := Follower{In: &growing{}, Interval: time.Second}
		if err := f.Run(ctx, func(trace.Envelope) {}); err == nil {
			t.Error("it ended by itself")
		}
	})
}
