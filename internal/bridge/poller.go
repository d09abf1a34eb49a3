package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/fit-eval/fit/internal/harness"
)

// Poller asks a bridge what people have written meanwhile. It is for one goroutine.
type Poller struct {
	// URL is the inbox address. It names the discussion, so it is never part of an error.
	URL string
	// HTTP sends the requests; nil is a default client.
	HTTP *http.Client
	// Backoff is the pause before a failure is reported; it doubles with every failure in a row, up
	// to a minute. 0 is half a second.
	Backoff time.Duration

	failures int
}

var _ harness.Inbox = (*Poller)(nil)

// Receive implements harness.Inbox. A failure is reported only after a pause, which grows with
// every failure, so that a bridge that is down is not polled constantly.
func (p *Poller) Receive(ctx context.Context, after int64) ([]harness.HumanMessage, error) {
	page, err := p.ask(ctx, after)
	if err != nil {
		if ctx.Err() == nil {
			select {
			case <-time.After(p.pause()):
			case <-ctx.Done():
			}
			p.failures++
		}
		return nil, err
	}
	p.failures = 0
	messages := make([]harness.HumanMessage, 0, len(page.Messages))
	for _, m := range page.Messages {
		if m.Seq > after {
			messages = append(messages, harness.HumanMessage{Seq: m.Seq, Author: m.Author, Text: m.Text})
		}
	}
	return messages, nil
}

func (p *Poller) pause() time.Duration {
	pause := cmp.Or(p.Backoff, defaultBackoff)
	for range p.failures {
		if pause = 2 * pause; pause > maxBackoff {
			return maxBackoff
		}
	}
	return pause
}

func (p *Poller) ask(ctx context.Context, after int64) (InboxPage, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*LongPoll)
	defer cancel()
	address, err := url.Parse(p.URL)
	if err != nil {
		return InboxPage{}, fmt.Errorf("inbox: the address is wrong: %w", withoutURL(err))
	}
	query := address.Query()
	query.Set("since", strconv.FormatInt(max(after, 0), 10))
	address.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return InboxPage{}, fmt.Errorf("inbox: %w", withoutURL(err))
	}
	response, err := httpClient(p.HTTP).Do(request)
	if err != nil {
		return InboxPage{}, fmt.Errorf("inbox: the bridge cannot be reached: %w", withoutURL(err))
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return InboxPage{}, fmt.Errorf("inbox: %w", &StatusError{response.StatusCode})
	}
	var page InboxPage
	if err := json.NewDecoder(io.LimitReader(response.Body, MaxPage)).Decode(&page); err != nil {
		return InboxPage{}, fmt.Errorf("inbox: the bridge's answer cannot be read: %w", err)
	}
	return page, nil
}
