package gateway_test

import (
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/fit-eval/fit/internal/gateway"
)

// The agents of a cell may share a container: what answers there takes the tokens of all of them,
// also when the one that opened it has left, and of nobody else.
func TestTheListenerOfACellTakesTheTokensOfTheCellOnly(t *testing.T) {
	h := open(t, gateway.Config{}, func(w http.ResponseWriter, _ *http.Request) { stream(w, messageStart, messageEnd) })
	join := func(name, cell string) *gateway.Seat {
		seat, err := h.Join(gateway.Member{
			Name: name,
			Cell: cell,
			Upstreams: []gateway.Upstream{
				{Protocol: gateway.Anthropic, URL: h.upstream + "/v1", Header: gateway.APIKey(realKey)},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return seat
	}
	lead, agent, stranger := join("lead", "task/arm/1"), join("agent", "task/arm/1"), join("agent", "task/arm/2")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- lead.ServeCell(listener) }()
	want := func(of string, seat *gateway.Seat, status int) {
		t.Helper()
		resp, text, err := post(t.Context(), fmt.Sprintf("http://%s/v1/messages", listener.Addr()), seat.Token,
			messageRequest)
		if err != nil || resp.StatusCode != status {
			t.Errorf("%s: status %v, want %d: %s %v", of, resp, status, text, err)
		}
	}
	want("who opened it", lead, http.StatusOK)
	want("another of the cell", agent, http.StatusOK)
	want("one of another cell", stranger, http.StatusUnauthorized)
	want("one without a cell", h.seat, http.StatusUnauthorized)
	if err := lead.Leave(); err != nil {
		t.Error(err)
	}
	want("who opened it and has left", lead, http.StatusUnauthorized)
	want("another, after the first has left", agent, http.StatusOK)
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	<-served
}
