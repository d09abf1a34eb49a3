package gateway_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/price"
	"github.com/fit-eval/fit/session"
)

const searching = `{"model":"claude-sonnet-4-5","max_tokens":10,"tools":[{"type":"web_search_20250305","name":"web_search"}]}`

// inUTF16 is a text as some servers recognise it by its first bytes.
func inUTF16(text string) []byte {
	encoded := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		encoded = binary.LittleEndian.AppendUint16(encoded, unit)
	}
	return encoded
}

// TestARequestThatTheGatewayCannotReadIsRefused: what it cannot read it can neither count nor take
// tools out of, and an upstream may read it all the same.
func TestARequestThatTheGatewayCannotReadIsRefused(t *testing.T) {
	policy := gateway.Policy{DenyServerTools: true}
	h := open(t, gateway.Config{Policy: policy}, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		t.Errorf("the upstream got %q", body)
	})
	var packed bytes.Buffer
	packer := gzip.NewWriter(&packed)
	_, _ = io.WriteString(packer, searching)
	_ = packer.Close()
	const compressed, unreadable = "is compressed", "is not a JSON object in UTF-8"
	for name, test := range map[string]struct {
		encoding string
		body     []byte
		status   int
		want     string
	}{
		"gzip":              {"gzip", packed.Bytes(), http.StatusUnsupportedMediaType, compressed},
		"zstd":              {"zstd", []byte{0x28, 0xb5, 0x2f, 0xfd}, http.StatusUnsupportedMediaType, compressed},
		"said to be":        {"deflate", []byte(searching), http.StatusUnsupportedMediaType, compressed},
		"gzip without word": {"", packed.Bytes(), http.StatusBadRequest, unreadable},
		"UTF-16":            {"", inUTF16(searching), http.StatusBadRequest, unreadable},
		"a mark at the top": {"", []byte("\ufeff" + searching), http.StatusBadRequest, unreadable},
		"an array":          {"", []byte("[" + searching + "]"), http.StatusBadRequest, unreadable},
		"no number":         {"", []byte(`{"temperature":NaN,` + searching[1:]), http.StatusBadRequest, unreadable},
		"two of them":       {"", []byte(`{}` + searching), http.StatusBadRequest, unreadable},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.seat.URL+"/v1/messages",
				bytes.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Api-Key", h.seat.Token)
			if test.encoding != "" {
				r.Header.Set("Content-Encoding", test.encoding)
			}
			resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			if c := h.last(); resp.StatusCode != test.status || !strings.Contains(string(text), test.want) ||
				c.Outcome != calls.Failed || !strings.Contains(c.Error, test.want) {
				t.Errorf("got %d %s; recorded %+v", resp.StatusCode, text, c)
			}
		})
	}
}

// TestSeveralRepliesAreReservedAtOnce: a request may ask for more than one.
func TestSeveralRepliesAreReservedAtOnce(t *testing.T) {
	for _, test := range []struct{ path, request string }{
		{"/v1/chat/completions", `{"model":"m","max_tokens":100,"n":50}`},
		{"/v1beta/models/m:generateContent", `{"generationConfig":{"maxOutputTokens":100,"candidateCount":50}}`},
	} {
		account := gateway.NewAccount("this run", gateway.Budget{Tokens: 4000}, nil)
		asked := make(chan struct{})
		proceed := make(chan struct{})
		h := openPaid(t, account, gateway.Config{}, func(w http.ResponseWriter, _ *http.Request) {
			asked <- struct{}{}
			<-proceed
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{}")
		})
		first := make(chan struct{})
		go func() {
			defer close(first)
			h.ask(test.path, test.request)
		}()
		<-asked
		another := gateway.Estimate{Body: []byte(`{"max_tokens":100}`), Paid: true}
		if _, err := account.Reserve(cancelledContext(), another); err == nil {
			t.Errorf("%s: while a call with fifty replies runs, another one has room", test.path)
		}
		close(proceed)
		<-first
	}
}

// TestADearerServiceIsNotPricedAsTheOrdinaryOne: what a faster service costs is unknown, so a
// budget in dollars does not pay for it.
func TestADearerServiceIsNotPricedAsTheOrdinaryOne(t *testing.T) {
	prices := session.ListPrices(price.Default())
	for request, want := range map[string]bool{
		`{"model":"gpt-5","max_output_tokens":10}`:                            true,
		`{"model":"gpt-5","max_output_tokens":10,"service_tier":"default"}`:   true,
		`{"model":"gpt-5","max_output_tokens":10,"service_tier":"flex"}`:      true,
		`{"model":"gpt-5","max_output_tokens":10,"service_tier":"priority"}`:  false,
		`{"model":"claude-opus-4-1","max_output_tokens":10,"speed":"fast"}`:   false,
		`{"model":"claude-opus-4-1","max_output_tokens":10,"speed":"normal"}`: true,
	} {
		t.Run(request, func(t *testing.T) {
			limited := gateway.NewAccount("this run", gateway.Budget{USD: 1}, prices)
			for _, budget := range []*gateway.Account{nil, limited} {
				h := openPaid(t, budget, gateway.Config{Prices: prices}, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, `{"usage":{"input_tokens":1000,"output_tokens":10}}`)
				})
				resp, text := h.ask("/v1/responses", request)
				c := h.last()
				passes := want || budget == nil
				if (resp.StatusCode == http.StatusOK) != passes || (c.CostUSD != nil) != want {
					t.Errorf("%d %s; recorded %+v", resp.StatusCode, text, c)
				}
				if !passes && !strings.Contains(c.Error, "has none") {
					t.Errorf("recorded %q", c.Error)
				}
			}
		})
	}
}

// cancelledContext is a context for what must not wait.
func cancelledContext() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
