package fleet

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// proof shows that the peer was given an attempt.
func (p *peer) proof(got *taken) string {
	mac := hmac.New(sha256.New, []byte(got.Ticket))
	mac.Write([]byte("running " + p.key))
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
