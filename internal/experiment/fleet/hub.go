package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// How often workers announce themselves, and after which time a silent one counts as gone.
const (
	heartbeat  = 2 * time.Second
	workerLife = 10 * time.Second
)

// Hub is a connection to a hub.
type Hub struct {
	nc *nats.Conn
	js jetstream.JetStream
	identity

	mu      sync.Mutex
	buckets map[string]jetstream.KeyValue // that were looked up
	streams map[string]jetstream.Stream
}

// stream returns a stream of the hub, which is looked up once.
func (h *Hub) stream(ctx context.Context, name string) (jetstream.Stream, error) {
	h.mu.Lock()
	known := h.streams[name]
	h.mu.Unlock()
	if known != nil {
		return known, nil
	}
	stream, err := h.js.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.streams[name] = stream
	h.mu.Unlock()
	return stream, nil
}

// bucket returns a bucket of the hub. It asks the hub once: workers use buckets all the time.
func (h *Hub) bucket(ctx context.Context, name string) (jetstream.KeyValue, error) {
	h.mu.Lock()
	known := h.buckets[name]
	h.mu.Unlock()
	if known != nil {
		return known, nil
	}
	kv, err := h.js.KeyValue(ctx, name)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.buckets[name] = kv
	h.mu.Unlock()
	return kv, nil
}

// get reads a key of a bucket.
func (h *Hub) get(ctx context.Context, bucket, key string) (jetstream.KeyValueEntry, error) {
	kv, err := h.bucket(ctx, bucket)
	if err != nil {
		return nil, err
	}
	return kv.Get(ctx, key)
}

// put writes a key of a bucket.
func (h *Hub) put(ctx context.Context, bucket, key string, value []byte) error {
	kv, err := h.bucket(ctx, bucket)
	if err == nil {
		_, err = kv.Put(ctx, key, value)
	}
	return err
}

// remove deletes a key of a bucket.
func (h *Hub) remove(ctx context.Context, bucket, key string) error {
	kv, err := h.bucket(ctx, bucket)
	if err != nil {
		return err
	}
	return kv.Delete(ctx, key)
}

// Dialing says how a member connects to a hub.
type Dialing struct {
	URL  string
	Name string // shown to the hub's operator
	// Role is what the member is there for; only a coordinator makes the stores of the fleet.
	Role string
	// Insecure accepts an external server that asks nobody who they are, or has no TLS.
	Insecure bool
}

// Dial connects to a hub.
func Dial(ctx context.Context, d Dialing) (*Hub, error) {
	// whoever may do something may look at it
	if join, err := parseJoinURL(d.URL); err == nil && join.Role != "" && join.Role != d.Role &&
		d.Role != RoleObserver {
		return nil, fmt.Errorf("this is the URL of a %s; it takes that of a %s", join.Role, d.Role)
	}
	nc, own, err := connect(ctx, d.URL, d.Name, d.Insecure)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(5*time.Second))
	if err != nil {
		nc.Close()
		return nil, err
	}
	h := &Hub{
		nc:       nc,
		js:       js,
		identity: own,
		buckets:  map[string]jetstream.KeyValue{},
		streams:  map[string]jetstream.Stream{},
	}
	if d.Role == RoleCoordinator {
		err = h.ensure(ctx)
	} else {
		err = h.checkProtocol(ctx)
		for try := 0; try < prepareTries && errors.Is(err, errNoFleet) && ctx.Err() == nil; try++ { // it just started
			pause(ctx)
			err = h.checkProtocol(ctx)
		}
	}
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("%s: %w", redactedURL(d.URL), err)
	}
	return h, nil
}

// Close ends the connection.
func (h *Hub) Close() { h.nc.Close() }

// ensure creates missing stores of the fleet, and makes sure that the fleet speaks our protocol.
func (h *Hub) ensure(ctx context.Context) error {
	_, err := h.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: fleetBucket, History: 1})
	if err == nil {
		// a key-value bucket without AllowRollup, with which one entry could remove all others
		_, err = h.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name:              "KV_" + workersBucket,
			Subjects:          []string{"$KV." + workersBucket + ".>"},
			MaxMsgsPerSubject: 1,
			MaxAge:            workerLife,
			Duplicates:        workerLife,
			Storage:           jetstream.MemoryStorage,
			Discard:           jetstream.DiscardNew,
			AllowDirect:       true,
			DenyDelete:        true,
			MaxMsgSize:        maxAnnouncement,
			MaxBytes:          maxAnnounced,
		})
	}
	if err == nil {
		_, err = h.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: treesBucket})
	}
	if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, nats.ErrNoResponders) {
		return errors.New("the server has no JetStream; start it with jetstream enabled")
	}
	if err != nil {
		return err
	}
	kv, err := h.bucket(ctx, fleetBucket)
	if err != nil {
		return err
	}
	// the first coordinator decides
	_, err = kv.Create(ctx, protocolKey, []byte(strconv.Itoa(Protocol)))
	if err == nil || !errors.Is(err, jetstream.ErrKeyExists) {
		return err
	}
	return h.checkProtocol(ctx)
}

// errNoFleet is returned for a server without the stores of a fleet.
var errNoFleet = errors.New("there is no fleet yet; prepare the server with fit fleet serve --nats URL")

// prepareTries is how often a member looks for the stores of a fleet.
const prepareTries = 30

// checkProtocol makes sure that the fleet speaks our protocol.
func (h *Hub) checkProtocol(ctx context.Context) error {
	entry, err := h.get(ctx, fleetBucket, protocolKey)
	if isAny(err, jetstream.ErrBucketNotFound, jetstream.ErrKeyNotFound) {
		return errNoFleet
	}
	if err != nil {
		return err
	}
	if got := string(entry.Value()); got != strconv.Itoa(Protocol) {
		return fmt.Errorf("the fleet speaks protocol %.20q and this fit speaks %d; install the same version of fit",
			got, Protocol)
	}
	return nil
}

// Workers returns the workers that are there, by name.
func (h *Hub) Workers(ctx context.Context) ([]Worker, error) {
	list, _, err := h.announcements(ctx)
	return list, err
}

// announcements returns the workers that are there, by name, and the key that leaves little room
// for the announcements of others; empty if none does.
func (h *Hub) announcements(ctx context.Context) (list []Worker, crowding string, err error) {
	stream, err := h.stream(ctx, "KV_"+workersBucket)
	if err != nil {
		return nil, "", err
	}
	const prefix = "$KV." + workersBucket + "."
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(prefix+"*.*"))
	if err != nil {
		return nil, "", err
	}
	began, read, ofKey := time.Now(), 0, map[string]int{}
	for _, subject := range inTurns(slices.Collect(maps.Keys(info.State.Subjects))) {
		if len(list) > 0 && time.Since(began) > listWorkers {
			break
		}
		message, err := stream.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // it has left
		}
		if err != nil {
			return nil, "", err
		}
		key, _, _ := strings.Cut(strings.TrimPrefix(subject, prefix), ".")
		read, ofKey[key] = read+len(message.Data), ofKey[key]+len(message.Data)
		if w, ok := readWorker(strings.TrimPrefix(subject, prefix), message.Data); ok {
			list = append(list, w)
		}
	}
	for key, size := range ofKey {
		if size > read/2 && info.State.Bytes > maxAnnounced/2 {
			crowding = key
		}
	}
	slices.SortFunc(list, func(a, b Worker) int { return cmp.Compare(a.Name, b.Name) })
	return list, crowding, nil
}

// listWorkers bounds the time in which announcements are read, in which one key may have thousands.
const listWorkers = 5 * time.Second

// inTurns orders the subjects of announcements so that every key has its turn, and leaves out those
// of a key that are too many.
func inTurns(subjects []string) []string {
	slices.Sort(subjects)
	turn, ofKey := map[string]int{}, map[string]int{}
	for _, subject := range subjects {
		key := subject[:strings.LastIndexByte(subject, '.')]
		turn[subject] = ofKey[key]
		ofKey[key]++
	}
	subjects = slices.DeleteFunc(subjects, func(s string) bool {
		return turn[s] >= maxPerKey || strings.HasPrefix(s, "$KV."+workersBucket+"."+livesPrefix)
	})
	slices.SortStableFunc(subjects, func(a, b string) int { return cmp.Compare(turn[a], turn[b]) })
	return subjects
}

// each visits the keys of a bucket that begin with a prefix. It needs no consumer, which not every
// role may make.
func (h *Hub) each(ctx context.Context, bucket, prefix string, visit func(key string, value []byte)) error {
	stream, err := h.stream(ctx, "KV_"+bucket)
	if err != nil {
		return err
	}
	subject := "$KV." + bucket + "."
	for next := uint64(1); ; {
		message, err := stream.GetMsg(ctx, next, jetstream.WithGetMsgSubject(subject+prefix+">"))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		next = message.Sequence + 1
		if message.Header.Get("KV-Operation") == "" {
			visit(strings.TrimPrefix(message.Subject, subject), message.Data)
		}
	}
}

// pools returns the pools of all experiments.
func (h *Hub) pools(ctx context.Context) ([]poolInfo, error) {
	var list []poolInfo
	err := h.each(ctx, fleetBucket, poolPrefix, func(key string, value []byte) {
		var p poolInfo
		if json.Unmarshal(value, &p) == nil && p.key() == key && p.valid() {
			list = append(list, p)
		}
	})
	slices.SortFunc(list, func(a, b poolInfo) int { return cmp.Compare(a.key(), b.key()) })
	return list, err
}

// attempts counts the attempts of a pool. A pool whose experiment is just ending has none any more.
func (h *Hub) attempts(ctx context.Context, p *poolInfo) (running, waiting int, err error) {
	consumer, err := h.js.Consumer(ctx, p.stream(), consumerName)
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound), errors.Is(err, jetstream.ErrStreamNotFound):
		return 0, 0, nil
	case err != nil:
		return 0, 0, err
	}
	info := consumer.CachedInfo()
	return info.NumAckPending, int(info.NumPending), nil
}

// coordinated returns the experiments that have a coordinator now.
func (h *Hub) coordinated(ctx context.Context) (map[string]bool, error) {
	runs := map[string]bool{}
	err := h.each(ctx, workersBucket, livesPrefix, func(key string, _ []byte) {
		runs[strings.TrimPrefix(key, livesPrefix)] = true
	})
	return runs, err
}

// Caps returns how many attempts may run at a time, by provider.
func (h *Hub) Caps(ctx context.Context) (map[string]int, error) {
	caps := map[string]int{}
	err := h.each(ctx, fleetBucket, capPrefix, func(key string, value []byte) {
		provider, ok := providerOf(key)
		if n, err := strconv.Atoi(string(value)); ok && err == nil && n >= 0 {
			caps[provider] = n
		}
	})
	return caps, err
}

// SetCap limits the attempts of a provider that run at a time, over the whole fleet; a negative
// number removes the limit.
func (h *Hub) SetCap(ctx context.Context, provider string, n int) error {
	if n < 0 {
		return h.remove(ctx, fleetBucket, providerKey(capPrefix, provider))
	}
	return h.put(ctx, fleetBucket, providerKey(capPrefix, provider), []byte(strconv.Itoa(n)))
}

// Drain asks a worker to take no more attempts and to leave when those it has are done.
func (h *Hub) Drain(ctx context.Context, worker string) error {
	workers, err := h.Workers(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(workers, func(w Worker) bool { return w.Name == worker })
	if at < 0 {
		var names []string
		for _, w := range workers {
			names = append(names, w.Name)
		}
		return fmt.Errorf("no worker %q; there are %s", worker, cmp.Or(strings.Join(names, ", "), "none"))
	}
	return h.put(ctx, fleetBucket, drainPrefix+worker, []byte(workers[at].session()))
}
