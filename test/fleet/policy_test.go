package fleet

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A worker runs what its owner allows, says what it refuses, and leaves the rest to others.
func TestAWorkerHasAPolicy(t *testing.T) {
	onBothServers(t, func(t *testing.T, w *world, enemy *peer) {
		coordinator := w.benchmark(nil, size{runs: 1}, "fleet", "--fleet", w.url, "--network", "host")
		of := enemy.pool()
		key := join(t, w.worker).key
		for name, c := range map[string]struct{ flag, value, why string }{
			"agents":       {"--allow-agent", "codex", "agent builtin is not allowed"},
			"networks":     {"--allow-network", "none,model", "network host is not allowed"},
			"coordinators": {"--allow-coordinator", enemy.key, "experiments of key " + of.By + " are not allowed"},
		} {
			w.start(nil, nil, "fleet", "work", "--fleet", w.worker, "--name", name, "--dir", filepath.Join(w.dir, name),
				c.flag, c.value)
			var about struct{ Refuses map[string]string }
			eventually(t, name+" says what it refuses", func() bool {
				answer, err := enemy.nc.Request("$JS.API.DIRECT.GET.KV_fit-workers",
					[]byte(`{"last_by_subj":"$KV.fit-workers.`+key+"."+name+`"}`), 5*time.Second)
				return err == nil && json.Unmarshal(answer.Data, &about) == nil && len(about.Refuses) > 0
			})
			for _, why := range about.Refuses {
				if !strings.Contains(why, c.why) {
					t.Errorf("%s %s: it says %q", c.flag, c.value, why)
				}
			}
		}
		w.finish(coordinator)
	})
}
