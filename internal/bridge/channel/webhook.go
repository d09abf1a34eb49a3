package channel

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/bridge/server"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/retry"
)

// Webhook sends every post to an address, as the Standard Webhooks describe it.
type Webhook struct {
	// URL may hold a token, so it is never part of an error.
	URL string
	// Secret signs what is sent.
	Secret []byte
	// HTTP sends the requests; nil is a default client.
	HTTP *http.Client
}

// ParseSecret reads the secret of a webhook: base64 after whsec_, or the text as it is.
func ParseSecret(text string) ([]byte, error) {
	encoded, isBase64 := strings.CutPrefix(text, "whsec_")
	if !isBase64 {
		return []byte(text), nil
	}
	secret, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, errors.New("what follows whsec_ must be base64")
	}
	return secret, nil
}

const sendTimeout = 30 * time.Second

// Channel describes the channel to a bridge.
func (w *Webhook) Channel() server.Channel {
	return server.Channel{Name: "webhook", Everything: true, Send: w.send}
}

// Event is what a webhook sends.
type Event struct {
	Type      string      `json:"type"` // post
	Timestamp time.Time   `json:"timestamp"`
	Data      EventOfPost `json:"data"`
}

// EventOfPost is a post with its thread.
type EventOfPost struct {
	Tenant string      `json:"tenant"`
	Thread string      `json:"thread"`
	Title  string      `json:"title"`
	Post   server.Post `json:"post"`
}

func (w *Webhook) send(ctx context.Context, letter server.Letter) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	body, err := jsonenc.Marshal(Event{
		Type:      "post",
		Timestamp: time.UnixMilli(letter.Post.At).UTC(),
		Data:      EventOfPost{letter.Tenant, letter.Thread, letter.Title, letter.Post},
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address is not valid")
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "fit")
	request.Header.Set("Webhook-Id", letter.ID)
	request.Header.Set("Webhook-Timestamp", now)
	request.Header.Set("Webhook-Signature", "v1,"+w.sign(letter.ID, now, body))
	client := http.Client{}
	if w.HTTP != nil {
		client = *w.HTTP
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(request)
	if err != nil {
		if with, ok := errors.AsType[*url.Error](err); ok {
			err = with.Err
		}
		return &server.SendError{Err: fmt.Errorf("the address cannot be reached: %w", err)}
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16)) // so that the connection can be used again
	return outcome(response)
}

// outcome says what came of a request: 2xx is taken, 410 ends it, and everything else may pass.
func outcome(response *http.Response) error {
	status := response.StatusCode
	if status/100 == 2 {
		return nil
	}
	err := fmt.Errorf("the receiver answered %d %s", status, http.StatusText(status))
	if status == http.StatusGone {
		return err
	}
	return &server.SendError{
		Err:   err,
		After: max(0, retry.Asked(response.Header, time.Now())),
		Busy:  status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable,
	}
}

func (w *Webhook) sign(id, now string, body []byte) string {
	mac := hmac.New(sha256.New, w.Secret)
	fmt.Fprintf(mac, "%s.%s.%s", id, now, body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
