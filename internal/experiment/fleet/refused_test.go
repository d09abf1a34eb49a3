package fleet

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/ledger"
)

// Who does not belong to the fleet is refused in one line that says why and does not repeat the
// token.
func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own, err := parseJoinURL(w.url)
	if err != nil {
		t.Fatal(err)
	}
	secure, err := StartServer(ServerConfig{Listen: "0.0.0.0:0", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer secure.Close()
	withTLS, err := parseJoinURL(secure.URL(RoleCoordinator))
	if err != nil || withTLS.Fingerprint == "" {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(withTLS.Address)
	if err != nil {
		t.Fatal(err)
	}
	withTLS.Address = "127.0.0.1:" + port
	hub, err := Dial(t.Context(), Dialing{URL: withTLS.String(), Role: RoleCoordinator})
	if err != nil {
		t.Fatalf("the right one: %v", err)
	}
	hub.Close()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	wrongToken := own
	wrongToken.Token = string(seed)
	wrongCert, noCert, cert := withTLS, withTLS, own
	wrongCert.Fingerprint = strings.Repeat("ab", 32)
	noCert.Fingerprint = ""
	cert.Fingerprint = withTLS.Fingerprint
	for name, c := range map[string]struct{ url, want string }{
		"token":       {wrongToken.String(), "refused the token"},
		"fingerprint": {wrongCert.String(), "certificate is not the one"},
		"no TLS":      {noCert.String(), "wants TLS"},
		"TLS":         {cert.String(), "has no TLS"},
		"cut token":   {strings.Replace(w.url, own.Token, own.Token[:20], 1), "incomplete"},
		"no URL":      {"http://127.0.0.1:1", "not a URL of a fleet"},
		"nobody":      {"fit://" + own.Token + "@127.0.0.1:1", "connect to fit://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Dial(t.Context(), Dialing{URL: c.url, Role: RoleCoordinator})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") ||
				strings.Contains(err.Error(), own.Token) {
				t.Errorf("%s: %v, want %q in one line", name, err, c.want)
			}
		})
	}
}

func TestAnotherProtocolIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	kv, err := w.dial().js.KeyValue(t.Context(), fleetBucket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), protocolKey, []byte(strconv.Itoa(Protocol+1))); err != nil {
		t.Fatal(err)
	}
	_, err = Dial(t.Context(), Dialing{URL: w.url, Role: RoleCoordinator})
	if err == nil || !strings.Contains(err.Error(), "speaks protocol") {
		t.Errorf("%v", err)
	}
}

// Garbage on the port, messages that are too large and results that lie disturb nobody.
func TestGarbageDisturbsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	join, err := parseJoinURL(w.url)
	if err != nil {
		t.Fatal(err)
	}
	p, output := w.prepared(2, 1, "a"), filepath.Join(w.dir, "run")
	dir, e := w.coordinate(p, output, nil)
	raw, err := net.Dial("tcp", join.Address)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = raw.Write(bytes.Repeat([]byte("\x00\xffGET / HTTP/1.1\r\n"), 10_000))
	_ = raw.Close()
	hub := w.dialAt(w.worker, RoleWorker)
	if err := hub.nc.Publish("fit.done."+e.run+".x.x", make([]byte, 100<<20)); err == nil ||
		!strings.Contains(err.Error(), "maximum payload") {
		t.Errorf("100 MB: %v", err)
	}
	cell := p.Plan.Cells()[0]
	for _, lie := range []any{
		"no object",
		done{Protocol: 9},
		done{Protocol: Protocol, Name: "runs/other"},
		done{Protocol: Protocol, Name: "../../escape", Nonce: newNonce()},
	} {
		content, err := json.Marshal(lie)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{cell.RunDir(1), "../../escape"} {
			if _, err := hub.js.Publish(t.Context(), doneSubject(e.run, hub.public, token(name)), content); err != nil {
				t.Fatal(err)
			}
		}
		subject := "fit.work." + e.run + "." + e.pools[0].Name + "." + newNonce()
		if _, err := e.cfg.Hub.js.Publish(t.Context(), subject, content); err != nil {
			t.Fatal(err)
		}
		_ = hub.nc.Publish(eventSubject(e.run, hub.public), content)
		_ = e.cfg.Hub.nc.Publish(cancelSubject(e.run), content)
	}
	w.work("w1", 1, passes, nil)
	if outcome := w.run(dir, e); outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	w.check(p, output)
	if _, err := os.Stat(filepath.Join(w.dir, "escape")); err == nil {
		t.Error("a result left the run directory")
	}
}

// A worker that lies about its files is an error, and what it names is not written.
func TestARecordNamesOnlyItsOwnFiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../x", "/etc/passwd", "runs/t/a/0/2/x", "runs/t/a/0/1/../../x"} {
		r := ledger.Record{RunDir: "runs/t/a/0/1", AgentTracePath: name}
		if insideRunDir(&r) == nil {
			t.Errorf("%q was accepted", name)
		}
	}
	r := ledger.Record{RunDir: "runs/t/a/0/1", AgentTracePath: "runs/t/a/0/1/agent.ndjson"}
	if err := insideRunDir(&r); err != nil {
		t.Error(err)
	}
}

// A record says what ran and how, at times at which its attempt was with workers, and at a cost
// that its tokens can have.
func TestARecordIsThatOfItsAttempt(t *testing.T) {
	t.Parallel()
	since, usd := time.Now(), func(n float64) *float64 { return &n }
	e := &Executor{cfg: Config{Prepared: &experiment.Prepared{}}}
	p := &pool{poolInfo: poolInfo{Needs: Needs{Agents: map[string]string{"builtin": "1"}, Isolation: "bwrap"}}}
	for name, change := range map[string]func(r *ledger.Record){
		"":                   func(*ledger.Record) {},
		"no agent":           func(r *ledger.Record) { r.Agent = "" },
		"another version":    func(r *ledger.Record) { r.AgentVersion = "2" },
		"no isolation":       func(r *ledger.Record) { r.Isolation = "" },
		"another isolation":  func(r *ledger.Record) { r.Isolation = "none" },
		"before it was made": func(r *ledger.Record) { r.StartMs -= time.Minute.Milliseconds() },
		"after its result":   func(r *ledger.Record) { r.EndMs += time.Hour.Milliseconds() },
		"too long":           func(r *ledger.Record) { r.DurationMs = time.Hour.Milliseconds() },
		"a fortune":          func(r *ledger.Record) { r.CostUSD = usd(999) },
		"a fortune in parts": func(r *ledger.Record) { r.CostBreakdown = &ledger.CostBreakdown{Judge: 999} },
		"a score":            func(r *ledger.Record) { r.Score = usd(1e300) },
		"a raw score":        func(r *ledger.Record) { r.Grade.Score = usd(-1) },
		"a vote's fortune":   func(r *ledger.Record) { r.JudgeVotes = []ledger.JudgeVote{{CostUSD: usd(999)}} },
		"another container":  func(r *ledger.Record) { r.Container = &ledger.Container{} },
		"held too long":      func(r *ledger.Record) { r.HeldMs = time.Hour.Milliseconds() },
		"countless tokens":   func(r *ledger.Record) { r.Tokens.OutputTokens = 1e12 },
	} {
		t.Run(name, func(t *testing.T) {
			r := verdict(experiment.Cell{Seed: 1})
			r.Agent, r.AgentVersion, r.Isolation = "builtin", "1", "bwrap, worktree"
			r.StartMs, r.EndMs = since.UnixMilli()+1, since.UnixMilli()+2
			r.Tokens, r.CostUSD = &ledger.UsageJSON{InputTokens: 1000, OutputTokens: 10}, usd(1)
			change(&r)
			stored := since.Add(time.Minute)
			err := cmp.Or(checkNumbers(&r, since, stored), e.checkCost(&r, since, stored), checkSetup(&r, p))
			if (name == "") != (err == nil) || err != nil && !errors.Is(err, errRecord) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	r := ledger.Record{Tokens: &ledger.UsageJSON{InputTokens: 1e8}, CostUSD: usd(900)}
	if err := e.checkCost(&r, since, since.Add(2*time.Hour)); err != nil {
		t.Errorf("a long attempt at a model without a price: %v", err)
	}
	e.cfg.Prepared.CellBudget.USD = 2
	if e.checkCost(&r, since, since.Add(2*time.Hour)) == nil {
		t.Error("an attempt may cost many times the budget of its cell")
	}
	e.cfg.Prepared.CellBudget.USD, r.CostUSD = 0.1, usd(5)
	if e.checkCost(&r, since, since.Add(2*time.Hour)) == nil {
		t.Error("a small budget of a cell does not count")
	}
}
