package fleet

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/ledger"
)

// proof shows that the peer was given an attempt.
func (p *peer) proof(got *taken) string { return got.proven("running " + p.key) }

// proven is what only who knows the ticket of an attempt can make of a text.
func (g *taken) proven(text string) string {
	mac := hmac.New(sha256.New, []byte(g.Ticket))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// until does something again and again until the function that it returns is called.
func until(t *testing.T, every time.Duration, do func()) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var doing sync.WaitGroup
	doing.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for ctx.Err() == nil {
			do()
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return func() { cancel(); doing.Wait() }
}

// A worker that proves that it was given an attempt, says that it is making it and keeps its lease
// does not have it forever.
func TestAnAttemptIsNotHeldForever(t *testing.T) {
	onBothServers(t, func(t *testing.T, w *world, enemy *peer) {
		coordinator := w.benchmark(nil, size{runs: 1}, "fleet", "--fleet", w.url)
		of := enemy.pool()
		held := enemy.take(of)
		about, err := json.Marshal(map[string]any{
			"protocol": 2, "name": "enemy", "host": "h", "slots": 1, "busy": 1,
			"running": []any{map[string]any{"run": of.Run, "attempt": held.name, "proof": enemy.proof(held)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		end := until(t, time.Second, func() { // also while the attempt is made by another one
			_ = held.message.InProgress()
			if err := enemy.nc.Publish("$KV.fit-workers."+enemy.key+".enemy", about); err != nil {
				t.Error(err)
			}
		})
		defer end()
		coordinator.says(held.name + ": worker enemy with key " + enemy.key + " has held it for longer than 15s")
		w.finish(coordinator)
		if strings.Contains(coordinator.out.String(), "no worker says that it is making them") {
			t.Error("it was taken from the enemy for another reason, so that nothing was tested")
		}
	}, "--max-held", "15s")
}

// Only the coordinator of an attempt ends it before its time.
func TestNobodyElseCancelsAttempts(t *testing.T) {
	onBothServers(t, func(t *testing.T, w *world, enemy *peer) {
		coordinator := w.benchmark(nil, size{runs: 1}, "fleet", "--fleet", w.url)
		of := enemy.pool()
		held := enemy.take(of)
		proof := held.proven("cancel")
		_ = held.message.Nak() // it is made by others, and the enemy knows its ticket
		end := until(t, 20*time.Millisecond, func() {
			for _, task := range []string{"t00", "t01"} {
				for _, arm := range []string{"a", "b"} {
					for attempt := range 5 {
						name := fmt.Sprintf("runs/%s/%s/0/%d", task, arm, attempt+1)
						asked := fmt.Appendf(nil, `{"name":%q,"proof":%q}`, name, proof)
						if err := enemy.nc.Publish("fit.cancel."+of.Run, asked); err != nil {
							t.Error(err)
						}
					}
				}
			}
		})
		defer end()
		w.finish(coordinator)
		if _, contents := w.counted("fleet"); len(contents.Records) != 4 {
			t.Errorf("%d attempts were made of 4 cells", len(contents.Records))
		}
	})
}

// Results that come after the first of their attempt stay in the run directory, whatever links they
// bring, and are few.
func TestDuplicatesStayInTheirPlace(t *testing.T) {
	onBothServers(t, func(t *testing.T, w *world, enemy *peer) {
		coordinator := w.benchmark(nil, size{runs: 1}, "fleet", "--fleet", w.url, "--regrade-sample", "0")
		of := enemy.pool()
		got := enemy.take(of)
		send := func(i int, files map[string]string) {
			content, hash := packed(t, files)
			enemy.send(of.Run, got.name, map[string]any{
				"record": of.passed(got.name), "tree": content, "sha256": hash, "ticket": got.Ticket,
				"nonce": fmt.Sprintf("%016x", i),
			})
		}
		send(0, map[string]string{"agent.ndjson": "{}\n"})
		coordinator.says("pass · 1/4")
		_ = got.message.Ack()
		place := t.TempDir()
		send(1, map[string]string{"agent.ndjson": "{}\n", "x": "-> " + place, "cwd": "-> " + place})
		send(2, map[string]string{"agent.ndjson": "{}\n", "cwd/x": "-> " + place})
		for i := range 20 { // the place of the second one, and new ones
			send(2+i, map[string]string{"agent.ndjson": "{}\n", "cwd/x/SKILL.md": "evil", "cwd/x/run.sh": "evil"})
		}
		coordinator.says("they are not kept")
		w.work(w.machine(1, 0))
		<-coordinator.over
		records, _ := w.counted("fleet")
		for _, r := range records {
			if (r.RunDir == got.name) != (r.SignedBy == enemy.key) {
				t.Errorf("%s is signed by %s", r.RunDir, r.SignedBy)
			}
		}
		if entries, err := os.ReadDir(place); err != nil || len(entries) > 0 || len(records) != 4 {
			t.Errorf("%d cells count, and %v is in the place of the enemy, %v", len(records), entries, err)
		}
		kept, _ := filepath.Glob(filepath.Join(w.dir, "fleet", "duplicates", got.name+"-*"))
		for _, dir := range kept {
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range entries {
				if entry.Type()&os.ModeSymlink != 0 {
					t.Errorf("%s of a duplicate is a link", entry.Name())
				}
			}
		}
		if len(kept) == 0 || len(kept) > 3 {
			t.Errorf("%d duplicates are kept", len(kept))
		}
	})
}

// A key does not fill the hub's disk with files that no result names.
func TestFilesOfOneKeyAreBounded(t *testing.T) {
	onBothServers(t, func(t *testing.T, w *world, enemy *peer) {
		coordinator := w.benchmark(nil, size{runs: 1}, "fleet", "--fleet", w.url)
		of := enemy.pool()
		sent, chunk := 0, make([]byte, 128<<10)
		end := until(t, 50*time.Millisecond, func() { // what is older than two leases is removed anyway
			sent++
			file := fmt.Sprintf("fit.file.%s.%s.%016x", of.Run, enemy.key, sent)
			if err := enemy.nc.Publish(file, chunk); err != nil {
				t.Error(err)
			}
		})
		defer end()
		coordinator.says("key " + enemy.key + " floods the hub: nothing of it is kept")
		end()
		files, err := join(t, w.url).js.Stream(t.Context(), "fit-files-"+of.Run)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the hub has none of its files", func() bool {
			info, err := files.Info(t.Context(), jetstream.WithSubjectFilter("fit.file."+of.Run+"."+enemy.key+".*"))
			return err == nil && len(info.State.Subjects) == 0
		})
		w.finish(coordinator)
	}, "--key-max-mb", "1")
}

// A key that reports broken objects that are none is not listened to for long: others are heard.
func TestFalseReportsDoNotDrownTrueOnes(t *testing.T) {
	onBothServers(t, func(t *testing.T, w *world, enemy *peer) {
		coordinator := w.benchmark(nil, size{runs: 1}, "fleet", "--fleet", w.url)
		of := enemy.pool()
		store, err := join(t, w.url).js.ObjectStore(t.Context(), "fit-trees")
		if err != nil {
			t.Fatal(err)
		}
		objects, err := store.List(t.Context())
		if err != nil || len(objects) < 2 {
			t.Fatal(objects, err)
		}
		for _, object := range objects {
			if _, err := store.PutBytes(t.Context(), object.Name, bytes.Repeat([]byte("poison"), 100)); err != nil {
				t.Fatal(err)
			}
		}
		end := until(t, time.Millisecond, func() {
			report := []byte(`{"worker":"enemy","broken":"x"}`)
			if err := enemy.nc.Publish("fit.event."+of.Run+"."+enemy.key, report); err != nil {
				t.Error(err)
			}
		})
		defer end()
		coordinator.says("key " + enemy.key + " reports broken objects that are not: it is ignored")
		w.finish(coordinator)
		if said := coordinator.out.String(); !strings.Contains(said, "was not what its name says") {
			t.Errorf("the coordinator says %s", shorten(said))
		}
	})
}

// Who says again and again that attempts were interrupted does not have them paid for without end.
func TestInterruptionsAreCounted(t *testing.T) {
	onBothServers(t, func(t *testing.T, w *world, enemy *peer) {
		coordinator := w.benchmark(nil, size{runs: 1}, "fleet", "--fleet", w.url)
		of := enemy.pool()
		for i := 0; !strings.Contains(coordinator.out.String(), "attempts at this cell were interrupted"); i++ {
			got := enemy.take(of)
			enemy.send(of.Run, got.name, map[string]any{
				"record": map[string]any{"verdict": "error", "errorClass": "interrupted", "errorMessage": "no"},
				"ticket": got.Ticket, "nonce": fmt.Sprintf("%016x", i),
			})
			_ = got.message.Ack()
			if i > 40 {
				t.Fatalf("%d attempts were interrupted", i)
			}
		}
		w.work(w.machine(1, 0))
		<-coordinator.over
		records, _ := w.counted("fleet")
		for _, r := range records {
			if r.Worker != "w1" || r.Verdict == ledger.Error {
				t.Errorf("%s: %s by %s", r.Key(), r.Verdict, r.Worker)
			}
		}
		if code := coordinator.cmd.ProcessState.ExitCode(); len(records) != 4 || code != 0 {
			t.Errorf("%d cells count, exit code %d", len(records), code)
		}
	})
}

// A key that fills the list of workers keeps nobody from joining, and no experiment from its end.
func TestTheListOfWorkersIsNotFilled(t *testing.T) {
	onBothServers(t, func(t *testing.T, w *world, enemy *peer) {
		coordinator := w.benchmark(nil, size{runs: 1}, "fleet", "--fleet", w.url)
		enemy.pool()
		sent, large := 0, make([]byte, 255<<10)
		end := until(t, 200*time.Millisecond, func() {
			for range 40 {
				sent++
				if err := enemy.nc.Publish(fmt.Sprintf("$KV.fit-workers.%s.n%d", enemy.key, sent), large); err != nil {
					t.Error(err)
				}
			}
		})
		defer end()
		coordinator.says("key " + enemy.key + " fills the list of workers")
		w.finish(coordinator)
	})
}

// A header of an announcement does not remove those of others.
func nobodyIsRemoved(t *testing.T, w *world, enemy *peer) {
	t.Helper()
	subject := "$KV.fit-workers.coordinator.x"
	owner := join(t, w.url)
	if _, err := owner.js.Publish(t.Context(), subject, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	wipe := nats.NewMsg("$KV.fit-workers." + enemy.key + ".wipe")
	wipe.Data = []byte("{}")
	wipe.Header.Set("Nats-Rollup", "all")
	_, _ = enemy.nc.RequestMsg(wipe, 5*time.Second) // whatever the hub answers
	stream, err := owner.js.Stream(t.Context(), "KV_fit-workers")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.GetLastMsgForSubject(t.Context(), subject); err != nil {
		t.Errorf("the announcement of another one is gone: %v", err)
	}
}
