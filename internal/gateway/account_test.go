package gateway

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/price"
	"github.com/fit-eval/fit/session"
)

// A millionth of a dollar for every token, of every sort.
func flatPrices(model string, usage session.TokenUsage, _ int64) (float64, bool) {
	return float64(usage.TotalTokens) / 1e6, model != "unpriced"
}

// request is a call whose request has so many bytes and which allows so many tokens of reply.
func request(bytes, maxTokens int) Estimate {
	body := fmt.Sprintf(`{"max_tokens":%d,"text":""}`, maxTokens)
	body = strings.Replace(body, `""`, `"`+strings.Repeat("x", max(0, bytes-len(body)))+`"`, 1)
	return Estimate{
		Model:    "priced",
		Protocol: Anthropic,
		Body:     []byte(body),
		Paid:     true,
	}
}

// cancelledContext is a context for calls that must not wait.
func cancelledContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// schedule is a tree of accounts in which calls begin, stream and end in any order.
type schedule struct {
	accounts []*Account // the experiment, two arms, four cells
	running  []*runningCall
	exceeded map[*Account]amount // what was spent of accounts that one call has exceeded
}

type runningCall struct {
	*Reservation
	usage session.TokenUsage
}

func TestSpendingExceedsABudgetByAtMostTheCallThatWasRunning(t *testing.T) {
	if err := flag.Set("rapid.checks", strconv.Itoa(testenv.Size(1000, 200))); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := newSchedule(t)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch step := rapid.IntRange(0, 3).Draw(t, "step"); {
			case step == 0 || len(s.running) == 0:
				s.begin(t)
			default:
				s.continueOne(t, step)
			}
			s.check(t, nil)
		}
		for len(s.running) > 0 {
			s.end(t, 0, false)
		}
	})
}

func newSchedule(t *rapid.T) *schedule {
	budget := func(name string, most int) Budget {
		b := Budget{USD: float64(rapid.IntRange(0, most).Draw(t, name+" dollars")) / 1e6}
		if rapid.Bool().Draw(t, name+" in tokens") {
			b.Tokens = int64(rapid.IntRange(1, most).Draw(t, name+" tokens"))
		}
		return b
	}
	root := NewAccount("the experiment", budget("experiment", 10_000), flatPrices)
	s := &schedule{accounts: []*Account{root}, exceeded: map[*Account]amount{}}
	for _, arm := range []string{"a", "b"} {
		account := root.Child(arm, budget(arm, 15_000))
		s.accounts = append(s.accounts, account)
		for _, cell := range []string{"0", "1"} {
			s.accounts = append(s.accounts, account.Child(arm+cell, budget(arm+cell, 8_000)))
		}
	}
	return s
}

func (s *schedule) begin(t *rapid.T) {
	cell := s.accounts[rapid.SampledFrom([]int{2, 3, 5, 6}).Draw(t, "cell")]
	call := request(rapid.IntRange(40, 1_000).Draw(t, "bytes"), rapid.IntRange(1, 4_000).Draw(t, "max_tokens"))
	reservation, err := cell.Reserve(cancelledContext(), call)
	var refused *BudgetError
	switch {
	case errors.As(err, &refused):
		if left := refused.Account.left(); reservationFits(cell, call, left) {
			t.Fatalf("refused by %s, which has %v left", refused.Account.name, left)
		}
	case err == nil:
		s.running = append(s.running, &runningCall{Reservation: reservation})
	case !errors.Is(err, context.Canceled):
		t.Fatal(err)
	}
}

// reservationFits reports whether the largest form of a call fits into what is left.
func reservationFits(a *Account, e Estimate, left amount) bool {
	most, _, _ := a.tree.bounds(e)
	return most.within(left)
}

func (s *schedule) continueOne(t *rapid.T, step int) {
	at := rapid.IntRange(0, len(s.running)-1).Draw(t, "call")
	call := s.running[at]
	input, output := int64(call.request/fewestBytesPerToken), call.most.tokens
	call.usage.InputTokens = rapid.Int64Range(0, input).Draw(t, "input")
	call.usage.OutputTokens = rapid.Int64Range(0, output-input-1).Draw(t, "output")
	err := call.Spend(call.usage, 0)
	if err != nil || step == 3 {
		s.end(t, at, err != nil)
	}
}

// end settles a call: one that was stopped with what it had used, others with what the wire says.
func (s *schedule) end(t *rapid.T, at int, stopped bool) {
	call := s.running[at]
	s.running = append(s.running[:at:at], s.running[at+1:]...)
	if stopped {
		call.Settle(nil)
	} else {
		call.Settle(&call.usage)
	}
	call.Settle(&session.TokenUsage{InputTokens: 1 << 40}) // only the first counts
	s.check(t, call)
}

// check holds every account to its budget: what is spent and held fits, and only a call that ran
// alone in the account exceeds it, by no more than what was reserved for it at most.
func (s *schedule) check(t *rapid.T, ended *runningCall) {
	for _, a := range s.accounts {
		if len(s.running) == 0 && (a.held != amount{} || a.running != 0) {
			t.Fatalf("%s holds %v for %d calls, and none is running", a.name, a.held, a.running)
		}
		left := a.left()
		if (amount{}).within(left.minus(a.held)) {
			continue
		}
		if was, before := s.exceeded[a]; before && was == a.spent {
			continue
		}
		if ended == nil || a.running > 0 || !(amount{}).within(left.plus(ended.most)) {
			t.Fatalf("%s: %v left, %v held, %d running", a.name, left, a.held, a.running)
		}
		s.exceeded[a] = a.spent
	}
}

func TestCallsThatDoNotFitWaitForThoseThatRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := NewAccount("the experiment", Budget{USD: 0.05}, flatPrices) // 50,000 tokens
		var all sync.WaitGroup
		began := time.Now()
		for range 20 {
			cell := root.Child("a cell", Budget{})
			all.Go(func() {
				reservation, err := cell.Reserve(t.Context(), request(100, 20_000))
				if err != nil {
					t.Errorf("refused although others need less than they hold: %v", err)
					return
				}
				time.Sleep(time.Second)
				reservation.Settle(&session.TokenUsage{InputTokens: 100, OutputTokens: 900})
			})
		}
		all.Wait()
		if usd, tokens := root.Spent(); tokens != 20_000 || usd != 0.02 {
			t.Errorf("%d tokens, $%v", tokens, usd)
		}
		if took := time.Since(began); took < 10*time.Second || took > 20*time.Second {
			t.Errorf("two of them fit at a time, and it took %s", took)
		}
	})
}

func TestALargerBudgetLetsAWaitingCallGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := NewAccount("the experiment", Budget{Tokens: 1000}, nil)
		running, err := root.Child("a cell", Budget{}).Reserve(t.Context(), request(100, 900))
		if err != nil {
			t.Fatal(err)
		}
		waited := make(chan error, 1)
		go func() {
			_, err := root.Child("another", Budget{}).Reserve(t.Context(), request(100, 900))
			waited <- err
		}()
		synctest.Wait()
		select {
		case err := <-waited:
			t.Fatalf("the call did not wait: %v", err)
		default:
		}
		root.Rebudget(Budget{Tokens: 5000})
		if err := <-waited; err != nil {
			t.Errorf("with a larger budget: %v", err)
		}
		root.Rebudget(Budget{Tokens: 1})
		if _, err := root.Reserve(cancelledContext(), request(100, 10)); err == nil {
			t.Error("a smaller budget does not hold for the next call")
		}
		running.Settle(nil)
	})
}

func TestAWaitEndsWithTheCaller(t *testing.T) {
	root := NewAccount("this run", Budget{Tokens: 1000}, nil)
	if _, err := root.Reserve(t.Context(), request(100, 900)); err != nil {
		t.Fatal(err)
	}
	var refused *BudgetError
	_, err := root.Reserve(cancelledContext(), request(100, 900))
	if !errors.Is(err, context.Canceled) || errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
}

func TestACallAloneGetsWhatIsLeftAndIsStoppedThere(t *testing.T) {
	root := NewAccount("this run", Budget{USD: 0.001}, flatPrices) // 1,000 tokens
	call, err := root.Reserve(t.Context(), request(200, 32_000))
	if err != nil {
		t.Fatal(err)
	}
	if err := call.Spend(session.TokenUsage{InputTokens: 100, OutputTokens: 1}, 800*streamedAnthropic); err != nil {
		t.Errorf("stopped with 900 of 1000 tokens: %v", err)
	}
	var gone *BudgetError
	err = call.Spend(session.TokenUsage{InputTokens: 100, OutputTokens: 1}, 901*streamedAnthropic)
	if !errors.As(err, &gone) || gone.Account != root {
		t.Errorf("not stopped with 1001 of 1000 tokens: %v", err)
	}
	call.Settle(nil)
	if _, tokens := root.Spent(); tokens != 1001 {
		t.Errorf("%d tokens", tokens)
	}
	if _, err := root.Reserve(t.Context(), request(200, 10)); !errors.As(err, &gone) ||
		!strings.HasPrefix(err.Error(), "the budget of this run of $0.001 is used up: $0.0010 are spent") {
		t.Errorf("a call was started with an empty account: %v", err)
	}
}

func TestADollarBudgetWithAModelThatHasNoPriceIsRefused(t *testing.T) {
	var refused *BudgetError
	call := request(100, 10)
	call.Model = "unpriced"
	cell := NewAccount("the experiment", Budget{USD: 0.01}, flatPrices).Child("a cell", Budget{})
	if _, err := cell.Reserve(t.Context(), call); !errors.As(err, &refused) ||
		!strings.Contains(err.Error(), `model "unpriced"`) {
		t.Errorf("%v", err)
	}
	inTokens := NewAccount("this run", Budget{Tokens: 10_000}, flatPrices)
	if _, err := inTokens.Reserve(t.Context(), call); err != nil {
		t.Errorf("a budget in tokens needs no price: %v", err)
	}
}

func TestReservationsKnowTheDearestAndTheCheapestForm(t *testing.T) {
	tree := &accountTree{prices: session.ListPrices(price.Default())}
	call := request(4_000_000, 1_000_000)
	call.Model = "claude-sonnet-4-5"
	most, least, priced := tree.bounds(call)
	// two million tokens written to the cache for an hour at $6, and a million of output at $15
	if want := nanos(2*6 + 15); !priced || most.nano < want || most.nano > want+10_000 {
		t.Errorf("at most %d, want %d", most.nano, want)
	}
	if want := nanos(0.5 * 0.3); least.nano < want || least.nano > want+1000 {
		t.Errorf("at least %d, want %d", least.nano, want)
	}
	chat := Estimate{Body: []byte(`{"max_completion_tokens":5}`), Paid: true}
	if _, output := chat.size(); output != 5 {
		t.Errorf("max_completion_tokens: %d", output)
	}
	responses := Estimate{Body: []byte(`{"input":"x"}`), Paid: true}
	if _, output := responses.size(); output != defaultOutput {
		t.Errorf("no limit: %d", output)
	}
	stored := Estimate{Body: []byte(`{"input":"x","previous_response_id":"resp_1"}`), Paid: true}
	if input, _ := stored.size(); input < fromServer {
		t.Errorf("input that the server has: %d", input)
	}
}

func TestCallsInParallelNeverSpendTheSameDollar(t *testing.T) {
	root := NewAccount("the experiment", Budget{USD: 0.02}, flatPrices) // 20,000 tokens
	var all sync.WaitGroup
	for i := range 8 {
		cell := root.Child("a cell", Budget{})
		all.Go(func() {
			draw := rand.New(rand.NewPCG(1, uint64(i)))
			for {
				call := request(100, 500)
				reservation, err := cell.Reserve(t.Context(), call)
				if err != nil {
					return
				}
				usage := session.TokenUsage{InputTokens: 40, OutputTokens: draw.Int64N(400)}
				if reservation.Spend(usage, 0) != nil {
					reservation.Settle(nil)
					return
				}
				reservation.Settle(&usage)
			}
		})
	}
	all.Wait()
	if _, tokens := root.Spent(); tokens < 19_000 || tokens > 20_000+551 {
		t.Errorf("%d tokens are spent of 20000", tokens)
	}
	if root.held != (amount{}) || root.running != 0 {
		t.Errorf("%v is held after the end", root.held)
	}
}

// TestAnEstimateIsNotChargedBeyondWhatACallHeld: a call is stopped because its request looks larger
// than what is left. Nobody knows what it cost, so the account is empty, and not overdrawn; what a
// reply does report is charged in full.
func TestAnEstimateIsNotChargedBeyondWhatACallHeld(t *testing.T) {
	for name, test := range map[string]struct {
		reported session.TokenUsage
		want     int64
	}{
		"nothing reported": {session.TokenUsage{}, 6000},
		"input reported":   {session.TokenUsage{InputTokens: 9000, TotalTokens: 9000}, 9000},
	} {
		t.Run(name, func(t *testing.T) {
			account := NewAccount("this run", Budget{Tokens: 6000}, nil)
			held, err := account.Reserve(t.Context(), Estimate{Model: "m", Body: make([]byte, 40_000), Paid: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := held.Spend(test.reported, 10); err == nil {
				t.Error("the call was not stopped")
			}
			held.Settle(nil)
			if _, tokens := account.Spent(); tokens != test.want {
				t.Errorf("%d tokens are spent, want %d", tokens, test.want)
			}
			if account.Empty() == nil {
				t.Error("the account has something left")
			}
		})
	}
}
