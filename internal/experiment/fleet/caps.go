package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// unbounded is the limit of a pool without a limit.
const unbounded = -1

// member is one of the pools that share a limit.
type member struct {
	key     string
	demand  int // attempts that wait or run
	running int
	granted int // how many it may run; 0 if that is not set
}

// room returns how many attempts a pool may run: its part of the bound, or less while others still
// use more than theirs.
func room(whole int, key string, members []member) int {
	used := 0
	for _, m := range members {
		if m.key != key {
			used += max(m.granted, m.running)
		}
	}
	return max(0, min(shareOf(whole, key, members), whole-used))
}

// shareOf returns the part of a bound that a pool gets: pools that want less than an equal part
// leave the rest to the others. The remainder goes to the first pools by name: a remainder that
// moved with every attempt would leave places empty.
func shareOf(whole int, key string, members []member) int {
	var want []member
	for _, m := range members {
		if m.demand > 0 || m.key == key {
			want = append(want, m)
		}
	}
	slices.SortFunc(want, func(a, b member) int { return cmp.Compare(a.key, b.key) })
	for len(want) > 0 {
		part := whole / len(want)
		modest := slices.IndexFunc(want, func(m member) bool { return max(m.demand, 1) <= part })
		if modest < 0 {
			break
		}
		if want[modest].key == key && len(want) > 1 {
			return max(want[modest].demand, 1)
		}
		if len(want) == 1 {
			return whole
		}
		whole -= max(want[modest].demand, 1)
		want = slices.Delete(want, modest, modest+1)
	}
	at := slices.IndexFunc(want, func(m member) bool { return m.key == key })
	part := whole / len(want)
	if at < whole%len(want) {
		part++
	}
	return part
}

// grants holds how many attempts the pools of a provider may run, as the hub keeps it. A
// coordinator takes more only if the grants have not changed since it read them, and counts running
// attempts after that: so several coordinators together never exceed a cap.
type grants struct {
	byPool   map[string]int
	revision uint64
}

func readGrants(ctx context.Context, kv jetstream.KeyValue, provider string) (*grants, error) {
	g := &grants{byPool: map[string]int{}}
	entry, err := kv.Get(ctx, providerKey(grantPrefix, provider))
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return g, nil
	case err != nil:
		return nil, err
	}
	g.revision = entry.Revision()
	if json.Unmarshal(entry.Value(), &g.byPool) != nil || g.byPool == nil {
		g.byPool = map[string]int{} // it was not written by fit
	}
	return g, nil
}

func (g *grants) write(ctx context.Context, kv jetstream.KeyValue, provider string) error {
	content, err := json.Marshal(g.byPool)
	if err == nil {
		g.revision, err = kv.Update(ctx, providerKey(grantPrefix, provider), content, g.revision)
	}
	return err
}

// sharing is one evaluation of the limits of an experiment's pools.
type sharing struct {
	e        *Executor
	kv       jetstream.KeyValue
	caps     map[string]int // of the providers of this experiment
	grants   map[string]*grants
	all      []poolInfo
	usage    map[string]member // by pool
	limit    int               // how many attempts of this experiment may run concurrently; 0: not bounded
	none     bool              // nothing may begin
	newLimit map[*pool]int
}

// share gives every pool its part of the cap of its provider, and of what the experiment may run
// at once. If a limit is lowered, none is raised before the next evaluation: only then is it known
// what runs.
func (e *Executor) share(ctx context.Context) error {
	s, err := e.look(ctx)
	if err != nil {
		return err
	}
	var lower, raise []*pool
	for _, p := range e.pools {
		switch limit := s.target(p); {
		case limit == p.limit:
		case limit != unbounded && (p.limit == unbounded || limit < p.limit):
			s.newLimit[p] = limit
			lower = append(lower, p)
		default:
			s.newLimit[p] = limit
			raise = append(raise, p)
		}
	}
	for _, p := range lower {
		if err := e.setLimit(ctx, p, s.newLimit[p]); err != nil {
			return err
		}
	}
	if len(lower) > 0 {
		e.wake()
		raise = nil
	}
	if err := s.writeGrants(ctx, raise); err != nil {
		return err
	}
	for _, p := range raise {
		if err := e.setLimit(ctx, p, s.newLimit[p]); err != nil {
			return err
		}
	}
	return nil
}

// look reads the limits of the pools: first the grants, then the running attempts.
func (e *Executor) look(ctx context.Context) (*sharing, error) {
	kv, err := e.cfg.Hub.bucket(ctx, fleetBucket)
	if err != nil {
		return nil, err
	}
	all, err := e.cfg.Hub.Caps(ctx)
	if err != nil {
		return nil, err
	}
	s := &sharing{
		e:        e,
		kv:       kv,
		caps:     map[string]int{},
		grants:   map[string]*grants{},
		usage:    map[string]member{},
		newLimit: map[*pool]int{},
	}
	e.mu.Lock()
	s.limit, s.none = e.limit, e.none
	e.mu.Unlock()
	for _, p := range e.pools {
		if whole, capped := all[p.Provider]; capped && s.grants[p.Provider] == nil {
			s.caps[p.Provider] = whole
			if s.grants[p.Provider], err = readGrants(ctx, kv, p.Provider); err != nil {
				return nil, err
			}
		}
	}
	if len(s.caps) == 0 && s.limit == 0 {
		return s, nil
	}
	if s.all, err = e.cfg.Hub.pools(ctx); err != nil {
		return nil, err
	}
	for i := range s.all {
		p := &s.all[i]
		if _, capped := s.caps[p.Provider]; !capped && p.Run != e.run {
			continue
		}
		running, waiting, err := e.cfg.Hub.attempts(ctx, p)
		if err != nil {
			return nil, err
		}
		s.usage[p.key()] = member{key: p.key(), running: running, demand: running + waiting}
	}
	return s, nil
}

// target returns the limit that a pool should have.
func (s *sharing) target(p *pool) int {
	if s.none {
		return 0
	}
	limit := unbounded
	if s.limit > 0 {
		var own []member
		for _, q := range s.e.pools {
			own = append(own, s.member(q.key(), s.granted(q)))
		}
		limit = room(s.limit, p.key(), own)
	}
	if whole, capped := s.caps[p.Provider]; capped {
		var same []member
		for i := range s.all {
			q := &s.all[i]
			if q.Provider != p.Provider {
				continue
			}
			granted := s.grants[p.Provider].byPool[q.key()]
			if own := slices.IndexFunc(s.e.pools, func(o *pool) bool { return o.key() == q.key() }); own >= 0 {
				granted = s.granted(s.e.pools[own])
			}
			same = append(same, s.member(q.key(), granted))
		}
		if part := room(whole, p.key(), same); limit == unbounded || part < limit {
			limit = part
		}
	}
	return limit
}

func (s *sharing) member(key string, granted int) member {
	m := s.usage[key]
	m.key, m.granted = key, max(granted, 0)
	return m
}

// granted returns how many attempts a pool of this experiment may run after this evaluation.
func (s *sharing) granted(p *pool) int {
	if limit, changes := s.newLimit[p]; changes {
		return max(limit, p.limit)
	}
	return p.limit
}

// writeGrants publishes what the pools of this coordinator may run.
func (s *sharing) writeGrants(ctx context.Context, raise []*pool) error {
	for provider, g := range s.grants {
		wanted := map[string]int{}
		for i := range s.all {
			if n, there := g.byPool[s.all[i].key()]; there {
				wanted[s.all[i].key()] = n
			}
		}
		for _, p := range s.e.pools {
			if p.Provider == provider {
				wanted[p.key()] = p.limit
				if slices.Contains(raise, p) {
					wanted[p.key()] = s.newLimit[p]
				}
			}
		}
		if maps.Equal(wanted, g.byPool) {
			continue
		}
		g.byPool = wanted
		if err := g.write(ctx, s.kv, provider); err != nil {
			return err
		}
	}
	return nil
}

// setLimit limits the attempts of a pool that run at a time. A consumer can always give out one, so
// workers must check whether a pool is on hold.
func (e *Executor) setLimit(ctx context.Context, p *pool, limit int) error {
	announce := func(hold bool) error {
		if p.Hold == hold {
			return nil
		}
		p.Hold = hold
		return e.announce(ctx, p)
	}
	if limit == 0 {
		if err := announce(true); err != nil {
			return err
		}
	}
	if err := e.makeConsumer(ctx, p, limit); err != nil {
		return err
	}
	p.limit = limit
	if limit != 0 {
		return announce(false)
	}
	return nil
}

// announce publishes the description of a pool.
func (e *Executor) announce(ctx context.Context, p *pool) error {
	content, err := json.Marshal(p.poolInfo)
	if err == nil {
		err = e.cfg.Hub.put(ctx, fleetBucket, p.key(), content)
	}
	return err
}

// consumerName is the one consumer of a pool, which all workers share: its limit of unacknowledged
// messages is the cap.
const consumerName = "workers"

func (e *Executor) makeConsumer(ctx context.Context, p *pool, limit int) error {
	pending := unbounded
	if limit != unbounded {
		pending = max(limit, 1)
	}
	_, err := p.stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable:       consumerName,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       e.cfg.Lease * 5 / 4, // by then a worker that cannot report has ended the attempt
		MaxAckPending: pending,
		MaxDeliver:    -1,
		MaxWaiting:    64 << 10,
	})
	return err
}

// Steer sets how many attempts of this experiment may run concurrently (0 is no limit), and whether
// new ones may begin. Running attempts are not stopped.
func (e *Executor) Steer(limit int, none bool) {
	e.mu.Lock()
	e.limit, e.none = limit, none
	e.mu.Unlock()
	e.wake()
}

// wake makes the watch look at once.
func (e *Executor) wake() {
	select {
	case e.steered <- struct{}{}:
	default:
	}
}
