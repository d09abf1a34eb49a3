package judge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/jsonlines"
	"github.com/fit-eval/fit/internal/model"
	"github.com/fit-eval/fit/price"
	"github.com/fit-eval/fit/redact"
)

// DefaultParallel is the default number of concurrent requests.
const DefaultParallel = 8

// Limits say how questions are put.
type Limits struct {
	// Parallel is the number of concurrent requests; 0 means DefaultParallel.
	Parallel int
	// BudgetUSD limits the total cost of judging the directory; nil is no limit.
	BudgetUSD *float64
	Prices    price.Table
	// Redactor takes secrets out of replies before they are kept; nil finds well-known shapes only.
	Redactor *redact.Redactor
	// Getenv looks up the members' API keys; nil means os.Getenv.
	Getenv func(string) string
	// Client returns the client of a member; nil connects to the member's endpoint.
	Client func(Member) (model.Client, error)
	// Now is the time in epoch milliseconds; nil means the system's clock.
	Now func() int64
}

func (l Limits) withDefaults() Limits {
	if l.Parallel <= 0 {
		l.Parallel = DefaultParallel
	}
	if l.Redactor == nil {
		l.Redactor = shapes()
	}
	if l.Getenv == nil {
		l.Getenv = os.Getenv
	}
	if l.Now == nil {
		l.Now = func() int64 { return time.Now().UnixMilli() }
	}
	return l
}

// Outcome is what asking came to.
type Outcome struct {
	// Asked counts the requests that were made.
	Asked int
	// CostUSD is their known cost; Unpriced counts those without a known cost.
	CostUSD  float64
	Unpriced int
	// LeftOut says why members do not judge, by name.
	LeftOut map[string]string
}

// errNoMembers is returned when the self-test leaves no member of the panel.
var errNoMembers = errors.New("no member of the panel passed the self-test")

// downMembers is the error for members that could not be asked. All other questions were asked and
// kept.
type downMembers struct {
	// members are those that failed, in the order of the panel, and err what the first one failed
	// with.
	members []string
	err     error
}

func (e *downMembers) Error() string {
	return fmt.Sprintf("judge %s cannot be asked: %v; the replies of the others are kept, and rerunning the "+
		"command asks only what is missing", strings.Join(e.members, ", "), e.err)
}

func (e *downMembers) Unwrap() error { return e.err }

// Ask puts every question that has no reply yet: first the self-test, then the questions about
// single runs, then the comparisons. What was answered before an error is kept.
func (s *Store) Ask(ctx context.Context, settings Settings, subjects []Subject, limits Limits) (Outcome, error) {
	limits = limits.withDefaults()
	settings = settings.withDefaults()
	a := &asking{
		store:    s,
		limits:   limits,
		account:  limits.account(s.spent()),
		down:     map[string]error{},
		underWay: map[string]chan struct{}{},
	}
	if err := limits.checkPrices(settings.Panel); err != nil {
		return Outcome{}, err
	}
	if err := s.note(settings, limits.Now()); err != nil {
		return Outcome{}, err
	}
	defer a.connect()()
	d := newDeriver(settings, subjects, s.find)
	err := a.phases(ctx, d)
	a.outcome.LeftOut = map[string]string{}
	for i := range d.members {
		if !d.members[i].isActive() {
			a.outcome.LeftOut[d.members[i].member.Name] = d.members[i].LeftOut
		}
	}
	if err == nil {
		err = a.downError(settings.Panel)
	}
	return a.outcome, err
}

// spent returns the known cost of the directory's replies so far.
func (s *Store) spent() float64 {
	sum := 0.0
	for i := range s.replies.list {
		if cost := s.replies.list[i].CostUSD; cost != nil {
			sum += *cost
		}
	}
	return sum
}

// asking is one call of Ask.
type asking struct {
	store  *Store
	limits Limits
	// account pays for the calls; nil is no limit.
	account *gateway.Account
	client  func(Member) (model.Client, error)

	mu      sync.Mutex
	down    map[string]error
	outcome Outcome
	// underWay are the requests that are being made, by key: two runs that are alike make the same.
	underWay map[string]chan struct{}
}

// phases asks in an order in which each step can use the results of the one before.
func (a *asking) phases(ctx context.Context, d *deriver) error {
	if d.settings.SelfTest {
		if err := a.all(ctx, d, trialQuestions(d)); err != nil {
			return err
		}
		d.selfTest()
		if !slices.ContainsFunc(d.members, func(m seat) bool { return m.isActive() }) {
			return noMembers(d)
		}
	}
	if d.settings.Sentences {
		return a.all(ctx, d, sentenceQuestions(d))
	}
	if err := a.all(ctx, d, singleQuestions(d)); err != nil {
		return err
	}
	if d.settings.Pairwise == PairsOff {
		return nil
	}
	return a.all(ctx, d, pairQuestions(d))
}

func noMembers(d *deriver) error {
	var reasons []string
	for i := range d.members {
		reasons = append(reasons, d.members[i].member.Name+": "+d.members[i].LeftOut)
	}
	return fmt.Errorf("%w (%s)", errNoMembers, strings.Join(reasons, "; "))
}

// all puts questions to every active member, several concurrently. When it returns, every reply
// that was paid for is on the disk.
func (a *asking) all(ctx context.Context, d *deriver, questions iter.Seq[*question]) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	written := make(chan error, 1)
	lines := make(chan []byte, 4*a.limits.Parallel)
	go func() { written <- a.write(lines, cancel) }()

	var group errgroup.Group
	group.SetLimit(a.limits.Parallel)
	for q := range questions {
		for i := range d.members {
			if m := &d.members[i]; m.isActive() && ctx.Err() == nil && !a.isDown(m.member) {
				group.Go(func() error {
					err := a.one(ctx, q, m.member, lines)
					if err != nil {
						cancel(err)
					}
					return err
				})
			}
		}
		if ctx.Err() != nil {
			break
		}
	}
	err := group.Wait()
	close(lines)
	if writeErr := <-written; writeErr != nil {
		return fmt.Errorf("write %s: %w", repliesFile, writeErr)
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// one asks a member until its answer is known: once, and once more if the reply cannot be read. A
// member that fails is not asked any more; only a failure that concerns everybody is an error.
func (a *asking) one(ctx context.Context, q *question, m Member, lines chan<- []byte) error {
	for {
		_, missing := q.answer(m, a.store.find)
		if missing == nil || a.isDown(m) || ctx.Err() != nil {
			return nil
		}
		if err := a.request(ctx, missing, lines); err != nil {
			return err
		}
	}
}

// request makes a request, unless the same one is in flight: then it waits for that.
func (a *asking) request(ctx context.Context, r *request, lines chan<- []byte) error {
	key := r.key()
	a.mu.Lock()
	same, mine := a.underWay[key], make(chan struct{})
	if same == nil {
		a.underWay[key] = mine
	}
	a.mu.Unlock()
	if same != nil {
		<-same
		return nil
	}
	defer func() {
		a.mu.Lock()
		delete(a.underWay, key)
		a.mu.Unlock()
		close(mine)
	}()
	if _, known := a.store.find(key); known { // it was in flight a moment ago
		return nil
	}
	reserved, err := a.reserve(ctx, r)
	if err != nil {
		return err
	}
	reply, err := a.call(ctx, r)
	a.settle(reserved, reply.CostUSD)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		a.setDown(r.member, err)
		return nil
	}
	line, err := jsonenc.Marshal(reply)
	if err != nil {
		return err
	}
	a.store.add(reply)
	a.count(reply)
	lines <- line
	return nil
}

// write writes replies to the disk, as many at once as there are: syncing each one would make the
// callers wait for the disk.
func (a *asking) write(lines <-chan []byte, cancel context.CancelCauseFunc) error {
	var failed error
	for line := range lines {
		batch := [][]byte{line}
		for more := true; more; {
			select {
			case next, ok := <-lines:
				if more = ok; ok {
					batch = append(batch, next)
				}
			default:
				more = false
			}
		}
		if failed != nil {
			continue // the senders must not wait
		}
		if failed = jsonlines.Append(a.store.file, bytes.Join(batch, []byte("\n"))); failed != nil {
			cancel(failed)
		}
	}
	return failed
}

// maxKeptReply bounds the text of a reply that is kept: its end, where the verdict is.
const maxKeptReply = 256 << 10

// call makes one request. A refusal or a question that does not fit is an answer too: it would be
// the same again.
func (a *asking) call(ctx context.Context, r *request) (storedReply, error) {
	reply := storedReply{
		Kind:      lineReply,
		Key:       r.key(),
		Member:    r.member.Name,
		Protocol:  r.member.Protocol,
		Model:     r.member.Model,
		Question:  r.question.kind,
		Dimension: r.question.dimension,
		About:     r.question.about,
		StartMs:   a.limits.Now(),
	}
	client, err := a.client(r.member)
	if err != nil {
		return storedReply{}, err
	}
	response, err := client.Complete(ctx, r.message())
	if failure, ok := errors.AsType[*model.Error](err); ok &&
		(failure.Kind == model.KindRefusal || failure.Kind == model.KindContextOverflow) {
		reply.Failure, err = string(failure.Kind), nil
		response.Attempts = cmp.Or(response.Attempts, failure.Attempts)
	}
	if err != nil {
		return storedReply{}, err
	}
	text := strings.ToValidUTF8(response.Text(), "\uFFFD")
	reply.Reply = a.limits.Redactor.String(text[max(0, len(text)-maxKeptReply):])
	reply.Reply = strings.ToValidUTF8(reply.Reply, "\uFFFD")
	reply.Stop = string(response.StopReason)
	reply.Usage = UsageJSON(response.Usage)
	reply.EndMs = a.limits.Now()
	if reply.Failure != "" || response.Usage.Prompt() > 0 { // a reply without usage is not free
		reply.CostUSD = a.limits.Prices.Cost(r.member.Model, reply.EndMs, response.Usage)
	}
	reply.Attempts = response.Attempts
	return reply, nil
}

func (a *asking) count(reply storedReply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outcome.Asked++
	if reply.CostUSD == nil {
		a.outcome.Unpriced++
	} else {
		a.outcome.CostUSD += *reply.CostUSD
	}
}

func (a *asking) isDown(m Member) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.down[m.Name] != nil
}

func (a *asking) setDown(m Member, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down[m.Name] == nil {
		a.down[m.Name] = err
	}
}

func (a *asking) downError(panel Panel) error {
	var down downMembers
	for _, member := range panel.Members {
		if err := a.down[member.Name]; err != nil {
			down.members = append(down.members, member.Name)
			down.err = cmp.Or(down.err, err)
		}
	}
	if len(down.members) == 0 {
		return nil
	}
	return &down
}
