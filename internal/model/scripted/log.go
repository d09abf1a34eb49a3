package scripted

import (
	"bytes"
	"encoding/json"
	"sync"
)

// Record is one request as logged. It holds no header, so no key; the body holds the whole
// conversation and is only there when asked for.
type Record struct {
	Seq      int    `json:"seq"`
	Time     int64  `json:"ts"`
	Protocol string `json:"protocol,omitempty"`
	Method   string `json:"method"`
	Path     string `json:"path"`
	Script   string `json:"script,omitempty"`
	Key      string `json:"key,omitempty"`
	Seed     string `json:"seed,omitempty"`
	// Conversation distinguishes conversations that run through the same script.
	Conversation string          `json:"conversation,omitempty"`
	Model        string          `json:"model,omitempty"`
	Stream       bool            `json:"stream,omitempty"`
	Scenario     string          `json:"scenario,omitempty"`
	Turn         int             `json:"turn"`
	Visit        int             `json:"visit,omitempty"`
	Attempt      int             `json:"attempt,omitempty"`
	Fault        string          `json:"fault,omitempty"`
	Status       int             `json:"status"`
	Bytes        int64           `json:"bytes"`
	DurationMs   int64           `json:"duration_ms"`
	Error        string          `json:"error,omitempty"`
	Body         json.RawMessage `json:"body,omitempty"`
}

// body records the request's body: as JSON if it is valid, else as text.
func (r *Record) body(body []byte, wanted bool) {
	if !wanted || len(body) == 0 {
		return
	}
	var compact bytes.Buffer
	if json.Compact(&compact, body) == nil {
		r.Body = compact.Bytes()
		return
	}
	r.Body = marshal(string(body))
}

// requestLog passes requests on and writes records, one at a time.
type requestLog struct {
	mu   sync.Mutex
	seq  int
	opts Options
}

func newRequestLog(opts Options) *requestLog { return &requestLog{opts: opts} }

func (l *requestLog) add(r Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Seq = l.seq
	l.seq++
	if l.opts.Log != nil {
		_, _ = l.opts.Log.Write(append(marshal(r), '\n')) // a full disk must not change the reply
	}
}

func (l *requestLog) request(r Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opts.OnRequest != nil {
		l.opts.OnRequest(r)
	}
}
