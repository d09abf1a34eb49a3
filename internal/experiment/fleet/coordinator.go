package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/internal/atomicfile"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/fleet/portable"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/redact"
)

// defaultLease is how long an attempt stays with a worker that does not report.
const defaultLease = 30 * time.Second

// runFile is the file of a run directory that names its streams on the hub.
const runFile = "fleet.json"

// Config configures the executor of a fleet.
type Config struct {
	Hub      *Hub
	Prepared *experiment.Prepared
	Dir      string // the run directory
	Version  string // of fit
	// Provider names the service that an arm's model is asked of; caps are by provider.
	Provider func(arm *experiment.Arm) string
	// Isolation is how attempts are isolated if the setup does not say; empty is what each worker
	// can do.
	Isolation string
	// Engine is the kind of engine for tasks that run in containers.
	Engine string
	Pull   bool          // workers pull missing images
	Lease  time.Duration // 0: the fleet's
	// Cost returns what the tokens of a record cost, by the prices of this machine; nil: unknown.
	Cost func(r *ledger.Record) *float64
	// Regrade grades what a passing attempt left again, on this machine, for a part of them; nil:
	// none.
	Regrade func(ctx context.Context, r *ledger.Record) (verdict string, err error)
	// RegradeSample is that part.
	RegradeSample float64
	// Secrets are values that must not be sent, by name.
	Secrets  map[string]string
	Redactor *redact.Redactor // nil: none
	// Note reports what people should know, such as that no worker can run a cell.
	Note func(text string)
}

// Executor runs cells on the workers of a fleet.
type Executor struct {
	cfg   Config
	run   string
	pools []*pool
	byArm map[string]map[string]*pool // by arm and task
	done  jetstream.Stream
	files jetstream.Stream
	trees []string // the objects that the experiment needs
	spec  string   // the hash of its description
	// secret makes the tickets of attempts.
	secret string
	began  time.Time // when the run directory became one of this fleet, by our clock

	cancel  context.CancelFunc
	workers sync.WaitGroup // goroutines
	changed chan struct{}  // receives when places may have changed
	steered chan struct{}  // receives when the limits of the pools must be looked at

	mu         sync.Mutex
	waiting    map[string]*waiting // attempts that were published, by token
	arrived    map[string]arrival  // the first result of attempts, by token
	held       int                 // bytes of results in arrived
	maxHeld    int
	sealed     map[string]ledger.Record // what the ledger had when this process began, by name
	failedOn   map[ledger.Cell][]string // workers on which a cell ended in infrastructure errors
	failedBy   map[ledger.Cell][]string // their keys
	faults     map[string]fault         // by key
	claimed    map[string]bool          // attempts that workers say they are making, by token
	refused    map[string][]string      // the keys whose results of an attempt were refused, by token
	since      map[string]time.Time     // when attempts were first published, by the hub's clock, by token
	ahead      time.Duration            // of our clock is the hub's
	duplicates map[string]int           // the results of attempts that were kept beside the first, by token
	stopped    map[ledger.Cell]int      // attempts at a cell that ended as interrupted and that nobody stopped
	broken     string                   // an object on the hub that is not what its name says
	brokenBy   string                   // the key that reported it
	replaced   bool                     // something on the hub was not what its name says
	// falseReports and garbage count what keys sent that was nothing.
	falseReports, garbage map[string]int

	able        map[string]bool            // the keys whose workers can run something of the experiment
	claims      map[string]map[string]bool // the keys that reported an error that stops an experiment, by its class
	repaired    time.Time                  // when such an object was last looked at
	read        uint64                     // the last message of the stream of results that was read
	reread      context.CancelFunc         // restarts the reader at read
	resultsLost bool                       // the stream of results is not the one that was read
	places      int
	limit       int  // how many attempts may run concurrently; 0: as many as there is place for
	none        bool // nothing may begin
	noted       map[string]bool
	longest     time.Duration // that a worker may hold an attempt; 0: as its task allows
	patience    time.Duration // how long an attempt waits for somebody to make it, or to say so
	maxFiles    uint64        // of a key, in chunks
	unpackAt    chan struct{} // bounds how many results are unpacked at a time

	publishFailed atomic.Bool
	toPublish     chan publication
}

// pool is a pool with its stream.
type pool struct {
	poolInfo
	stream jetstream.Stream
	limit  int // of its consumer, or unbounded; 0: on hold
}

// waiting is an attempt whose result is awaited.
type waiting struct {
	work      work
	pool      *pool
	over      chan struct{} // closed when the result is there
	published bool
	err       error  // why there will be none
	worker    string // that has begun it; empty: none so far
	stopped   bool   // no worker may begin it any more
	// silentSince is when a worker last said that it is making it, or when it was first looked for.
	silentSince time.Time
	// nobodySince is when it was first seen that no key that is there may make it.
	nobodySince time.Time
	// held is since when keys have proved that they were given it.
	held map[string]time.Time
}

// arrival is the first result of an attempt. Its large parts may have stayed on the hub.
type arrival struct {
	done
	sequence  uint64 // of its message
	stored    time.Time
	onHubOnly bool // record and files are on the hub only
}

// New publishes an experiment and begins to read the results of its attempts.
func New(ctx context.Context, cfg Config) (*Executor, error) {
	settings, err := cfg.Hub.settings(ctx)
	if err != nil {
		return nil, err
	}
	if cfg.Lease <= 0 {
		cfg.Lease = settings.Lease
	}
	cfg.Note = plain(cfg.Note)
	own, err := runID(cfg.Dir)
	if err != nil {
		return nil, err
	}
	e := &Executor{
		cfg:      cfg,
		run:      own.Run,
		secret:   own.Secret,
		began:    own.made,
		changed:  make(chan struct{}, 1),
		steered:  make(chan struct{}, 1),
		waiting:  map[string]*waiting{},
		arrived:  map[string]arrival{},
		sealed:   map[string]ledger.Record{},
		failedOn: map[ledger.Cell][]string{},
		failedBy: map[ledger.Cell][]string{},
		faults:   map[string]fault{},
		refused:  map[string][]string{},

		since:      map[string]time.Time{},
		duplicates: map[string]int{},
		stopped:    map[ledger.Cell]int{},

		falseReports: map[string]int{},
		garbage:      map[string]int{},
		able:         map[string]bool{},
		claims:       map[string]map[string]bool{},

		noted:     map[string]bool{},
		toPublish: make(chan publication),
		unpackAt:  make(chan struct{}, 4),
		places:    1,
		maxHeld:   maxHeld,
		longest:   settings.MaxHeld,
		patience:  max(cfg.Lease, 2*workerLife),
		maxFiles:  uint64(settings.KeyMaxMB) << 20 / chunkSize,
	}
	if err := e.readLedger(); err != nil {
		return nil, err
	}
	withheld, err := e.publishExperiment(ctx)
	if err != nil {
		return nil, fmt.Errorf("publish the experiment: %w", err)
	}
	e.makePools(withheld)
	if err := e.openStreams(ctx); err != nil {
		return nil, fmt.Errorf("open the streams of the experiment: %w", err)
	}
	e.lives(ctx)
	_ = e.share(ctx)                                      // the watch tries again
	if workers, err := cfg.Hub.Workers(ctx); err == nil { // whom an error stops is known before the first one
		e.count(ctx, workers)
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e.cancel = cancel
	for range publishers {
		e.workers.Go(func() { e.publishAll(background) })
	}
	e.workers.Go(func() { e.readResults(background) })
	e.workers.Go(func() { e.watch(background) })
	if err := e.catchUp(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("read the results that are there: %w", err), e.Close())
	}
	return e, nil
}

// plain returns what notes what others may have said: on one line, and without escapes.
func plain(note func(string)) func(string) {
	return func(text string) {
		if note != nil {
			note(display.CutRunes(display.Line(text), maxText))
		}
	}
}

// runNames is what a run directory keeps about its place on the hub: the name of its streams, and
// what makes the tickets of its attempts.
type runNames struct {
	Run    string `json:"run"`
	Secret string `json:"secret"`

	made time.Time
}

// runID names the streams of a run directory. Two run directories may have the same plan.
func runID(dir string) (runNames, error) {
	name := filepath.Join(dir, runFile)
	content, err := os.ReadFile(name)
	file := runNames{made: time.Now()}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		file.Run, err = newNonce(), nil
	case err == nil:
		file.made = modified(name)
		if err = json.Unmarshal(content, &file); err == nil && !isNonce(file.Run) {
			err = errors.New("it names no run")
		}
	}
	if err == nil && file.Secret == "" { // as in those of earlier versions
		file.Secret = rand.Text()
		if content, err = json.Marshal(file); err == nil {
			err = atomicfile.WriteSynced(name, 0o600, append(content, '\n'))
		}
	}
	if err != nil {
		return runNames{}, fmt.Errorf("%s: %w", name, err)
	}
	return file, nil
}

func newNonce() string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	return hex.EncodeToString(random[:])
}

func isNonce(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == 8
}

// readLedger notes which attempts have their record, and who made it.
func (e *Executor) readLedger() error {
	contents, err := ledger.ReadFile(filepath.Join(e.cfg.Dir, experiment.LedgerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, r := range contents.Records {
		e.sealed[r.RunDir] = ledger.Record{Worker: r.Worker, StartMs: r.StartMs, DurationMs: r.DurationMs}
		if r.Verdict == ledger.Error && r.Worker != "" {
			e.failedOn[r.Cell()] = append(e.failedOn[r.Cell()], r.Worker)
			e.failedBy[r.Cell()] = append(e.failedBy[r.Cell()], r.SignedBy)
		}
	}
	return nil
}

// publishExperiment puts the experiment and its files where workers find them.
func (e *Executor) publishExperiment(ctx context.Context) (withheld map[string][]string, err error) {
	packed, roots, withheld, err := portable.Pack(e.cfg.Prepared, e.cfg.Dir)
	if err != nil {
		return nil, err
	}
	packed.Protocol, packed.Pull = Protocol, e.cfg.Pull
	content, err := json.Marshal(packed)
	if err != nil {
		return nil, err
	}
	if err := e.searched(func(w io.Writer) error { _, err := w.Write(content); return err }); err != nil {
		return nil, fmt.Errorf("the tasks or arms: %w", err)
	}
	if err := e.publishTrees(ctx, roots); err != nil {
		return nil, err
	}
	e.spec, err = e.putSpec(ctx, content)
	return withheld, err
}

// makePools groups arms and tasks by what they need from a worker.
func (e *Executor) makePools(withheld map[string][]string) {
	e.byArm = map[string]map[string]*pool{}
	known := map[string]*pool{}
	prepared := e.cfg.Prepared
	for i := range prepared.Arms {
		arm := &prepared.Arms[i]
		e.byArm[arm.Name] = map[string]*pool{}
		for j := range prepared.Family.Tasks {
			t := &prepared.Family.Tasks[j]
			info := poolInfo{
				Protocol: Protocol,
				Run:      e.run,
				Provider: e.cfg.Provider(arm),
				Needs:    e.needs(i, j, withheld[arm.Name]),
				By:       e.cfg.Hub.public,
				LeaseMs:  e.cfg.Lease.Milliseconds(),
				Trees:    e.trees,
				Title:    prepared.Family.Name,
				Dir:      e.cfg.Dir,
			}
			content, _ := json.Marshal([]any{info.Provider, info.Needs}) // strings always marshal
			sum := sha256.Sum256(content)
			info.Name = hex.EncodeToString(sum[:6])
			p := known[info.Name]
			if p == nil {
				info.Hold = true // until its part of the cap is known
				p = &pool{poolInfo: info}
				known[info.Name] = p
				e.pools = append(e.pools, p)
			}
			if !slices.Contains(p.Arms, arm.Name) {
				p.Arms = append(p.Arms, arm.Name)
			}
			e.byArm[arm.Name][t.ID] = p
		}
	}
}

// needs returns what a worker must have for a task with an arm.
func (e *Executor) needs(arm, taskIndex int, env []string) Needs {
	prepared := e.cfg.Prepared
	t := &prepared.Family.Tasks[taskIndex]
	n := Needs{Fit: e.cfg.Version, Agents: map[string]string{}, Env: env}
	for _, planned := range prepared.Plan.Arms {
		if planned.Name == prepared.Arms[arm].Name {
			n.Agents[planned.Agent] = planned.AgentVersion
			if planned.Lead != "" {
				n.Agents[planned.Lead] = planned.LeadVersion
			}
		}
	}
	here := e.cfg.Isolation
	if t.Settings.Environment != nil { // a task with an image runs in it, unless another isolation is requested
		here = e.cfg.Engine
	}
	n.Isolation = cmp.Or(prepared.Isolation, t.Settings.Isolation, here)
	n.Labels = append(slices.Clone(prepared.Arms[arm].Needs), t.Settings.Needs...)
	slices.Sort(n.Labels)
	n.Labels = slices.Compact(n.Labels)
	return n
}

// openStreams makes the streams and announces the pools.
func (e *Executor) openStreams(ctx context.Context) error {
	js := e.cfg.Hub.js
	results, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name:        doneStream(e.run),
		Subjects:    []string{doneSubject(e.run, "*", "*")},
		AllowDirect: true,

		MaxMsgsPerSubject: maxRefused + 1, // of a key and an attempt
	})
	if err != nil {
		return err
	}
	files, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name:        filesStream(e.run),
		Subjects:    []string{fileSubject(e.run, "*", "*")},
		AllowDirect: true,
		MaxMsgSize:  chunkSize + chunkSlack,
	})
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.done, e.files = results, files
	e.mu.Unlock()
	for _, p := range e.pools {
		stream, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name:                 p.poolInfo.stream(),
			Subjects:             []string{"fit.work." + e.run + "." + p.Name + ".*"},
			Retention:            jetstream.WorkQueuePolicy,
			Discard:              jetstream.DiscardNew,
			DiscardNewPerSubject: true,
			MaxMsgsPerSubject:    1,
			Duplicates:           time.Second,
		})
		if err != nil {
			return err
		}
		e.mu.Lock()
		p.stream = stream
		e.mu.Unlock()
		if err := e.makeConsumer(ctx, p, p.limit); err != nil {
			return err
		}
		if err := e.announce(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the experiment on the hub, even if it is incomplete, and waits for what was started.
func (e *Executor) Close() error {
	e.cancel()
	e.workers.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var own []poolInfo
	for _, p := range e.pools {
		own = append(own, p.poolInfo)
	}
	if err := e.cfg.Hub.removeRun(ctx, e.run, own); err != nil {
		// the results are in the run directory; leftovers on the hub do no harm
		e.cfg.Note(fmt.Sprintf("the experiment's streams stay on the hub: %v", err))
	}
	return nil
}

// removeRun removes what a hub has of an experiment.
func (h *Hub) removeRun(ctx context.Context, run string, pools []poolInfo) error {
	problems := []error{h.js.DeleteStream(ctx, doneStream(run)), h.js.DeleteStream(ctx, filesStream(run))}
	for i := range pools {
		problems = append(problems, h.remove(ctx, fleetBucket, pools[i].key()),
			h.js.DeleteStream(ctx, pools[i].stream()))
	}
	_ = h.remove(ctx, workersBucket, livesPrefix+run) // it expires anyway
	problems = slices.DeleteFunc(problems, func(err error) bool {
		return err == nil || errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, nats.ErrStreamNotFound) ||
			errors.Is(err, jetstream.ErrBucketNotFound)
	})
	return cmp.Or(problems...)
}
