package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/session"
)

// perToken prices a token at a millionth of a dollar.
func perToken(_ string, u session.TokenUsage, _ int64) (float64, bool) {
	return float64(u.TotalTokens) / 1e6, true
}

// scheduled is an account of a random schedule, with what it may spend.
type scheduled struct {
	*gateway.Account
	budget gateway.Budget
}

// largestCall is what the largest call of these schedules may cost: a request of at most 400 bytes,
// and 500 tokens of reply.
const largestCall = 400/2 + 1 + 500

// TestTeamsInParallelCellsKeepEveryBudget: two participants of each of four cells make calls at the
// same time, two each. Of no budget, be it the cell's, the arm's or the experiment's, more is spent
// than it has and the one call that was running.
func TestTeamsInParallelCellsKeepEveryBudget(t *testing.T) {
	h := open(t, gateway.Config{}, spendAsAsked)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	defer client.CloseIdleConnections()
	exceeded := 0
	for number := 0; number < 1000; number += testenv.Stride(11, 51) {
		draw := rand.New(rand.NewPCG(16, uint64(number)))
		accounts, cells := drawAccounts(draw)
		var all sync.WaitGroup
		for _, cell := range cells {
			for range 2 {
				seat, err := h.Join(gateway.Member{
					Name: "participant", Account: cell,
					Upstreams: []gateway.Upstream{{Protocol: gateway.Anthropic, URL: h.upstream + "/v1"}},
				})
				if err != nil {
					t.Fatal(err)
				}
				defer seat.Leave()
				for range 2 {
					seed := draw.Uint64()
					all.Go(func() { callUntilRefused(t, client, seat, rand.New(rand.NewPCG(seed, 1))) })
				}
			}
		}
		all.Wait()
		for i, a := range accounts {
			usd, tokens := a.Spent()
			if over := tokens - a.budget.Tokens; a.budget.Tokens > 0 && over > 0 {
				exceeded++
				if over > largestCall {
					t.Errorf("schedule %d, account %d: %d tokens of %d", number, i, tokens, a.budget.Tokens)
				}
			}
			if over := usd - a.budget.USD; a.budget.USD > 0 && over > largestCall/1e6+1e-9 {
				t.Errorf("schedule %d, account %d: $%v of $%v", number, i, usd, a.budget.USD)
			}
		}
	}
	t.Logf("%d budgets were exceeded by the last call", exceeded)
}

// drawAccounts draws an experiment, two arms and four cells with budgets, and returns all of them
// and the cells.
func drawAccounts(draw *rand.Rand) (all []scheduled, cells []*gateway.Account) {
	budget := func(most int64) gateway.Budget {
		b := gateway.Budget{USD: float64(500+draw.Int64N(most)) / 1e6}
		if draw.IntN(2) == 0 {
			b.Tokens = 500 + draw.Int64N(most)
		}
		return b
	}
	whole := budget(6000)
	root := gateway.NewAccount("the experiment", whole, perToken)
	all = append(all, scheduled{root, whole})
	for range 2 {
		ofArm := budget(4000)
		arm := root.Child("an arm", ofArm)
		all = append(all, scheduled{arm, ofArm})
		for range 2 {
			ofCell := budget(3000)
			cell := arm.Child("a cell", ofCell)
			all, cells = append(all, scheduled{cell, ofCell}), append(cells, cell)
		}
	}
	return all, cells
}

// callUntilRefused makes a few calls, of which the first that is refused is the last.
func callUntilRefused(t *testing.T, client *http.Client, seat *gateway.Seat, draw *rand.Rand) {
	for range 4 {
		output := 1 + draw.IntN(500)
		body := fmt.Sprintf(`{"model":"m","max_tokens":%d,"stream":%t,"said":%d,"text":%q}`, output, draw.IntN(2) == 0,
			draw.IntN(output), strings.Repeat("x", draw.IntN(300)))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, seat.URL+"/v1/messages",
			strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("X-Api-Key", seat.Token)
		resp, err := client.Do(r)
		if err != nil {
			t.Error(err)
			return
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		switch {
		case resp.StatusCode == http.StatusBadRequest && strings.Contains(string(text), "budget"),
			strings.Contains(string(text), "event: error"):
			return
		case err != nil || resp.StatusCode != http.StatusOK:
			t.Errorf("%s: %s %v", resp.Status, text, err)
			return
		}
	}
}

// spendAsAsked answers with the tokens that a request names.
func spendAsAsked(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Said   int  `json:"said"`
		Stream bool `json:"stream"`
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &asked)
	input := len(body) / 2
	if !asked.Stream {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"type":"message","model":"m","usage":{"input_tokens":%d,"output_tokens":%d}}`, input, asked.Said)
		return
	}
	stream(w,
		fmt.Sprintf("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\","+
			"\"usage\":{\"input_tokens\":%d,\"output_tokens\":1}}}\n\n", input),
		messageDelta,
		fmt.Sprintf("event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":%d}}\n\n"+
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", asked.Said))
}
