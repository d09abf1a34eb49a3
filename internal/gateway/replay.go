package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/redact"
)

// The values of --replay-mode.
const (
	// ReplayStrict answers requests that are recorded, apart from what differs from run to run:
	// ids, dates, directories. It fails at the first that differs in anything that a model reads.
	ReplayStrict = "strict"
	// ReplayNearest answers with the best match, by its position in the conversation and by its
	// content without what differs from run to run.
	ReplayNearest = "nearest"
	// ReplayLive answers what is recorded, apart from what differs from run to run, and asks the
	// upstream otherwise.
	ReplayLive = "live"
)

// ReplayModes returns the modes, the default first.
func ReplayModes() []string { return []string{ReplayNearest, ReplayStrict, ReplayLive} }

// Request is a call that is looked up in a record.
type Request struct {
	Protocol, Path, Model string
	Body                  []byte
}

// Recorded is an answer from a record.
type Recorded struct {
	Status int
	Header http.Header
	Body   []byte
	Usage  *calls.UsageJSON
	// CostUSD is the cost of the call when it was recorded; nil is unknown.
	CostUSD *float64
	// Differs says where the request differs from the recorded one in what a model would read;
	// empty if it does not.
	Differs string
}

// ReplayConfig says how a record answers.
type ReplayConfig struct {
	Mode string // empty is ReplayNearest
	// Redactor is that of the session: a record holds no secrets, so requests are compared without
	// them.
	Redactor *redact.Redactor
}

// Recording is a record that answers calls. It is safe for use from many goroutines.
type Recording struct {
	path string
	mode string

	mu      sync.Mutex
	reader  *calls.Reader
	cleaner *calls.Cleaner
	calls   []*recordedCall
	missed  error                        // the first request that was not recorded, where that ends a replay
	dirs    map[string]map[string]string // of the participants, when they were recorded
}

// OpenReplay opens a record for replay.
func OpenReplay(path string, cfg ReplayConfig) (*Recording, error) {
	reader, err := calls.Open(path)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	r := &Recording{
		path:    path,
		mode:    cfg.Mode,
		reader:  reader,
		cleaner: calls.NewCleaner(cfg.Redactor),
		dirs:    map[string]map[string]string{},
	}
	r.mode = cmp.Or(r.mode, ReplayNearest)
	for _, place := range reader.Places() {
		r.dirs[place.Participant] = place.Dirs
	}
	if err := r.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("replay %s: %w", path, err), reader.Close())
	}
	return r, nil
}

// load reads the requests of all calls that can be answered again.
func (r *Recording) load() error {
	all := r.reader.Calls()
	normals := map[string]*calls.Normaliser{}
	for i := range all {
		call := &all[i]
		switch call.Outcome {
		case calls.OK, calls.Failed, calls.Replayed:
		default:
			continue // refused by ourselves, spoiled, or not complete
		}
		if call.Status == 0 {
			continue
		}
		chunks, err := r.reader.Request(call)
		if errors.Is(err, calls.ErrNoBody) {
			return errors.New("it was recorded without bodies; record with --record bodies")
		}
		if err != nil {
			return fmt.Errorf("call %d of %s: %w", call.Seq, call.Participant, err)
		}
		normal := normals[call.Participant]
		if normal == nil {
			normal = calls.NewNormaliser(r.dirs[call.Participant])
			normals[call.Participant] = normal
		}
		form := newForm(call.Path, call.Model, chunks, normal)
		r.calls = append(r.calls, &recordedCall{form: form, call: call})
	}
	// A file may hold more than one session. The last one is the one that people mean.
	slices.SortStableFunc(r.calls, func(a, b *recordedCall) int { return b.call.Session - a.call.Session })
	r.dropRetried()
	if len(r.calls) == 0 {
		return errors.New("it holds no complete call")
	}
	return nil
}

// dropRetried leaves out failures that the agent retried with success: the later answer counts.
func (r *Recording) dropRetried() {
	r.calls = slices.DeleteFunc(r.calls, func(c *recordedCall) bool {
		return c.call.Status >= 400 && slices.ContainsFunc(r.calls, func(later *recordedCall) bool {
			return later.call.Status < 400 && later.call.Session == c.call.Session &&
				later.call.Participant == c.call.Participant && later.alike(c.form)
		})
	})
}

// Close closes the record.
func (r *Recording) Close() error { return r.reader.Close() }

// For returns a Replay for one participant, which works in these directories now.
func (r *Recording) For(participant string, dirs map[string]string) *Replay {
	return &Replay{
		record:      r,
		participant: participant,
		dirs:        dirs,
		normal:      calls.NewNormaliser(dirs),
	}
}

// Replay answers the calls of one participant from a record.
type Replay struct {
	record      *Recording
	participant string
	dirs        map[string]string
	normal      *calls.Normaliser
	asked       int
}

// Answer returns the recorded answer to a request; false means that the upstream must be asked.
func (p *Replay) Answer(request Request) (Recorded, bool, error) {
	r := p.record
	r.mu.Lock()
	defer r.mu.Unlock()
	p.asked++
	if r.missed != nil { // an agent that asks again learns nothing else
		return Recorded{}, false, r.missed
	}
	chunks := r.cleaner.Request(request.Body)
	form := newForm(request.Path, request.Model, chunks, p.normal)
	found := r.find(p.participant, form)
	if found == nil && r.mode == ReplayLive {
		return Recorded{}, false, nil
	}
	var err error
	if found == nil {
		err = p.miss(request.Path, chunks)
		if damage := r.reader.Damage(); damage != "" {
			err = fmt.Errorf("%w; %s", err, damage)
		}
		if r.mode == ReplayStrict {
			r.missed = err
		}
		return Recorded{}, false, err
	}
	found.used++
	differs := ""
	if !found.alike(form) {
		if differs, err = p.difference(found.call, chunks); err != nil {
			return Recorded{}, false, err
		}
	}
	body, err := r.reader.Body(found.call.Response)
	if err != nil {
		return Recorded{}, false, fmt.Errorf("replay %s: call %d: %w", r.path, found.call.Seq, err)
	}
	kind := "application/json"
	if found.call.Response.Stream {
		kind = "text/event-stream"
	}
	return Recorded{
		Status:  found.call.Status,
		Header:  http.Header{"Content-Type": {kind}},
		Body:    moved(body, found.call.Response.Stream, r.dirs[p.participant], p.dirs),
		Usage:   found.call.Usage,
		CostUSD: found.call.CostUSD,
		Differs: differs,
	}, true, nil
}

// find returns the call that answers a request. Unused calls come before used ones, and earlier
// ones before later ones of the same session.
func (r *Recording) find(participant string, form form) *recordedCall {
	var best *recordedCall
	bestScore := -1
	for _, c := range r.calls {
		if c.call.Participant != participant || c.path != form.path {
			continue
		}
		score := -1
		switch {
		case c.alike(form):
			score = 1 << 30
		case r.mode == ReplayNearest && c.used == 0:
			score = c.score(form)
		}
		if score > bestScore || score == bestScore && score >= 0 && best.used > 0 && c.used == 0 {
			best, bestScore = c, score
		}
	}
	return best
}

// miss says why no recorded call fits.
func (p *Replay) miss(path string, now []calls.Chunk) error {
	r := p.record
	var next *recordedCall
	for _, c := range r.calls {
		if c.call.Participant == p.participant && c.path == path && c.used == 0 {
			next = c
			break
		}
	}
	if next == nil {
		return fmt.Errorf("replay %s: no recorded call left for request %d of %s to %s",
			r.path, p.asked, p.participant, path)
	}
	differs, err := p.difference(next.call, now)
	if err != nil {
		return err
	}
	return fmt.Errorf("replay %s: request %d of %s differs from recorded call %d: %s", r.path, p.asked,
		p.participant, next.call.Seq, differs)
}

// difference describes where a request first differs from a recorded one.
func (p *Replay) difference(call *calls.Call, now []calls.Chunk) (string, error) {
	r := p.record
	recorded, err := r.reader.Request(call)
	if err != nil {
		return "", fmt.Errorf("replay %s: call %d: %w", r.path, call.Seq, err)
	}
	normal := calls.NewNormaliser(r.dirs[p.participant])
	places := map[string]int{}
	for i := range min(len(recorded), len(now)) {
		a, b := &recorded[i], &now[i]
		where := "the request"
		if a.Member != "" {
			where = fmt.Sprintf("%s[%d]", a.Member, places[a.Member])
			places[a.Member]++
		}
		if a.Member != b.Member {
			return where + " was recorded, and is now missing or in another position", nil
		}
		if normal.Sum(a) != p.normal.Sum(b) {
			was, is := excerpts(string(normal.Chunk(a)), string(p.normal.Chunk(b)))
			return fmt.Sprintf("%s was %q and is %q", where, was, is), nil
		}
	}
	return fmt.Sprintf("%d parts were recorded, and now there are %d", len(recorded), len(now)), nil
}

// recordedCall is a call that can be answered again.
type recordedCall struct {
	form
	call *calls.Call
	used int
}

// form is the form in which requests are compared.
type form struct {
	path, model string
	plain       []calls.Sum // of the chunks without what differs from run to run
	messages    int
	tools       int
}

func newForm(path, model string, chunks []calls.Chunk, normal *calls.Normaliser) form {
	f := form{path: path, model: model}
	for i := range chunks {
		f.plain = append(f.plain, normal.Sum(&chunks[i]))
		switch chunks[i].Member {
		case "messages", "input", "contents":
			f.messages++
		case "tools":
			f.tools++
		}
	}
	return f
}

// alike reports whether two requests are equal apart from what differs from run to run.
func (f *form) alike(other form) bool { return slices.Equal(f.plain, other.plain) }

// score returns how well a request matches, -1 if not at all: it must be at the same position of a
// conversation with the same kind of model call.
func (f *form) score(other form) int {
	if f.messages != other.messages || (f.tools == 0) != (other.tools == 0) || f.model != other.model {
		return -1
	}
	score := 0
	for i := range min(len(f.plain), len(other.plain)) {
		if f.plain[i] == other.plain[i] {
			score++
		}
	}
	return score
}

// excerpts returns the parts of two texts around their first difference.
func excerpts(a, b string) (string, string) {
	const before, after = 24, 40
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	cut := func(s string) string {
		return strings.ToValidUTF8(s[max(0, min(at, len(s))-before):min(len(s), at+after)], "")
	}
	return cut(a), cut(b)
}
