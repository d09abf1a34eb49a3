package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/bridge/server"
)

// clock is one that a test sets forward.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) passes(d time.Duration) { c.ahead.Add(int64(d)) }

// openAt opens a bridge whose runs may take five hours of a clock.
func openAt(t *testing.T) (*place, *clock) {
	t.Helper()
	c := &clock{}
	p := open(t)
	p.end()
	p.cfg.Now, p.cfg.RunLimit = c.now, 5*time.Hour
	p.start()
	return p, c
}

// goesOn checks that a run is held again, under its name.
func (r run) goesOn(what string) {
	r.p.t.Helper()
	again := r.p.run()
	if again.job.Run != r.job.Run || !again.job.Again {
		r.p.t.Fatalf("%s: %+v", what, again.job)
	}
}

// TestOnlyTheTimeOfARunCountsForItsLimit: not a recess in which people suspended it, and not the
// time in which no bridge was up.
func TestOnlyTheTimeOfARunCountsForItsLimit(t *testing.T) {
	p, clock := openAt(t)
	thread := p.say("", "Which licence?")
	first := p.run()
	suspended := func(between func()) {
		p.act(thread, "recess")
		between()
		p.act(thread, "resume")
	}
	suspended(func() { clock.passes(6 * time.Hour) })
	first.goesOn("after a long recess")
	p.end()
	clock.passes(6 * time.Hour)
	p.start()
	first.goesOn("after the bridge was down for long")
	suspended(func() { clock.passes(6 * time.Hour); p.restart(); clock.passes(6 * time.Hour) })
	first.goesOn("after a recess in which the bridge was down")
	clock.passes(3 * time.Hour)
	suspended(func() {})
	first.goesOn("after three hours of work")
	p.restart()
	first.goesOn("after a restart")
	clock.passes(3 * time.Hour) // six hours of work
	p.say("", "Another thread, so that the bridge looks what is due.")
	p.ended(thread, "within 5h0m0s")
}

// TestARunElsewhereIsLateAfterItsLimit: it was dispatched, and a recess does not count.
func TestARunElsewhereIsLateAfterItsLimit(t *testing.T) {
	p, clock := openAt(t)
	p.end()
	p.cfg.Dispatch = func(_ context.Context, job server.Job) error {
		p.jobs <- job
		return nil
	}
	p.start()
	thread := p.say("", "Which licence?")
	first := p.run()
	p.act(thread, "recess")
	clock.passes(6 * time.Hour)
	p.act(thread, "resume")
	p.restart()
	first.reply(1)
	check(t, "the thread", "open", p.view(thread).Thread.State)
	clock.passes(6 * time.Hour)
	p.say("", "Another thread, so that the bridge looks what is due.")
	p.ended(thread, "within 5h0m0s")
}

// ended waits until the run of a thread has failed.
func (p *place) ended(thread, why string) {
	p.t.Helper()
	for view := p.view(thread); view.Thread.State != "failed"; {
		path := fmt.Sprintf("/api/threads/%s?after=%d&wait=%s", thread, view.Thread.Last, view.Doing)
		view = server.View{}
		p.ask(p.token, http.MethodGet, path, nil, &view)
	}
	if said := p.posts(thread, "end"); len(said) != 1 || !strings.Contains(said[0], why) {
		p.t.Errorf("the end: %q", said)
	}
}

// TestARunThatPeopleStopCostsWhatItSpent, also while it is suspended, and what a run elsewhere
// reports after it was stopped.
func TestARunThatPeopleStopCostsWhatItSpent(t *testing.T) {
	p := open(t)
	p.end()
	p.cfg.Spent = func(context.Context, server.Job) float64 { return 0.25 }
	p.start()
	thread := p.say("", "Which licence?")
	first := p.run()
	costs := func(what string, want float64) {
		t.Helper()
		limit := time.Now().Add(time.Minute)
		got := p.view(thread).Thread.CostUSD
		for got != want && time.Now().Before(limit) {
			got = p.view(thread).Thread.CostUSD
		}
		check(t, "the cost, "+what, want, got)
	}
	p.act(thread, "recess")
	costs("suspended", 0.25)
	p.act(thread, "stop")
	check(t, "the cost after the end", 0.25, p.view(thread).Thread.CostUSD)
	end := adjourned
	end.CostUSD = 0.5
	first.ends(end)
	costs("reported late", 0.5)
	p.say(thread, "Again.")
	p.run()
	p.act(thread, "stop")
	costs("stopped", 0.75)
}
