package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
)

// A worker's key gives no right to replace objects, to read what others do, or to steer the fleet.
func TestAPeerHasTheRightsOfItsRole(t *testing.T) {
	onBothServers(t, func(t *testing.T, w *world, enemy *peer) {
		coordinator := w.benchmark(nil, size{runs: 1}, "fleet", "--fleet", w.url)
		of := enemy.pool()
		work := "fit-work-" + of.Run + "-" + of.Name
		observer := join(t, filepath.Join(w.dir, "hub", "observer.url"))
		for _, subject := range []string{
			"$JS.API.STREAM.MSG.GET." + work, "$JS.API.DIRECT.GET." + work, "$JS.API.STREAM.INFO." + work,
			"$JS.API.STREAM.MSG.GET.fit-done-" + of.Run, "$JS.API.DIRECT.GET.fit-done-" + of.Run,
			"$JS.API.STREAM.MSG.GET.fit-files-" + of.Run, "$JS.API.DIRECT.GET.fit-files-" + of.Run,
			"$JS.API.STREAM.DELETE." + work, "$JS.API.STREAM.PURGE." + work, "$JS.API.STREAM.CREATE.mine",
			"$JS.API.CONSUMER.CREATE.OBJ_fit-trees", "$JS.API.CONSUMER.CREATE." + work, "$JS.API.STREAM.NAMES",
			"$KV.fit-fleet.drain.w1", "$KV.fit-fleet.protocol", "$KV.fit-workers.w1", "$O.fit-trees.M.x",
			"fit.work." + of.Run + "." + of.Name + ".x", "fit.done." + of.Run + ".OTHER.x",
		} {
			for _, who := range []*peer{enemy, observer} {
				if who.may(subject, `{"seq":1}`) {
					t.Errorf("key %s may use %s", who.key, subject)
				}
			}
		}
		for _, subject := range []string{ // what a worker may
			"$JS.API.CONSUMER.MSG.NEXT." + work + ".workers", "$JS.API.DIRECT.GET.OBJ_fit-trees",
			"$JS.API.STREAM.INFO.OBJ_fit-trees", "$KV.fit-workers." + observer.key + ".x",
			"fit.done." + of.Run + "." + observer.key + ".x", "fit.file." + of.Run + "." + observer.key + ".x",
		} {
			if observer.may(subject, `{"seq":1}`) {
				t.Errorf("an observer may use %s", subject)
			}
		}
		answersReachOnlyWhoAsked(t, w, enemy, of)
		answersReachOnlyWhoAsked(t, w, observer, of)
		announced := map[string]any{
			"protocol": 2, "name": "huge", "fit": "1.2.3", "slots": 2_000_000_000,
			"agents": map[string]string{"builtin": "9"},
		}
		content, err := json.Marshal(announced)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := enemy.js.Publish(t.Context(), "$KV.fit-workers."+enemy.key+".huge", content); err != nil {
			t.Error(err)
		}
		content = fmt.Appendf(nil, `{"protocol":2,"name":"loud","fit":"\u001b[31m","slots":1,"labels":["\u001b]0;x\u0007"],`+
			`"host":"\u001b[2J","agents":{"\u001b[1m":"\u009b1m"},"trouble":"\u001b[5m\nforged"}`)
		if _, err := enemy.js.Publish(t.Context(), "$KV.fit-workers."+enemy.key+".loud", content); err != nil {
			t.Error(err)
		}
		nobodyIsRemoved(t, w, enemy)
		heard := make(chan *nats.Msg, 1000)
		for _, subject := range []string{">", "fit.work.>", "fit.done.>", "_INBOX.>", "$O.>", "$JS.>"} {
			if _, err := enemy.nc.ChanSubscribe(subject, heard); err != nil {
				t.Log(err)
			}
		}
		w.work(w.machine(1, 0))
		status := w.start(nil, nil, "fleet", "status", filepath.Join(w.dir, "hub", "observer.url"))
		<-status.over
		if said := status.out.String(); strings.Contains(said, "huge") || !strings.Contains(said, "w1") {
			t.Errorf("status says %s", said)
		}
		for _, said := range []string{status.out.String(), coordinator.out.String()} {
			if strings.ContainsAny(said, "\x1b\x07\u009b") || strings.Contains(said, "\nforged") {
				t.Errorf("an escape reached the terminal: %q", said)
			}
		}
		if !strings.Contains(status.out.String(), "loud") {
			t.Error("the worker with escapes is not shown, so that nothing was tested")
		}
		<-coordinator.over
		if records, _ := w.counted("fleet"); len(records) != 4 || coordinator.cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("%d cells count, exit code %d", len(records), coordinator.cmd.ProcessState.ExitCode())
		}
		for len(heard) > 0 {
			// workers follow the store of the fleet
			if subject := (<-heard).Subject; !strings.HasPrefix(subject, "$KV.fit-fleet.") {
				t.Errorf("the peer heard %s", subject)
			}
		}
		if content := stored(t, w.dir); bytes.Contains(content, []byte("not ok 1 - answer")) {
			t.Error("hidden tests can be read in the hub's files")
		}
	})
}

// Whoever asks the hub names the subject of the answer: none is written into a store, or heard by
// others.
func answersReachOnlyWhoAsked(t *testing.T, w *world, enemy *peer, of pool) {
	t.Helper()
	owner := join(t, w.url)
	entries := map[string]string{
		"$KV.fit-fleet.protocol": "KV_fit-fleet", "$KV.fit-fleet.lease": "KV_fit-fleet",
		"$KV.fit-fleet.cap.eA":                         "KV_fit-fleet",
		"$KV.fit-fleet.pool." + of.Run + "." + of.Name: "KV_fit-fleet", "$KV.fit-fleet.drain.w1": "KV_fit-fleet",
		"$KV.fit-workers.coordinator.x": "KV_fit-workers", "$O.fit-trees.M.x": "OBJ_fit-trees",
		"fit.work." + of.Run + "." + of.Name + ".x": "fit-work-" + of.Run + "-" + of.Name,
		"fit.done." + of.Run + ".mark.mark":         "fit-done-" + of.Run,
	}
	last := func(subject string) (seq uint64) {
		stream, err := owner.js.Stream(t.Context(), entries[subject])
		if err != nil {
			t.Fatal(err)
		}
		if message, err := stream.GetLastMsgForSubject(t.Context(), subject); err == nil {
			seq = message.Sequence
		}
		return seq
	}
	before := map[string]uint64{}
	for subject := range entries {
		before[subject] = last(subject)
	}
	for subject := range entries {
		for _, question := range []string{
			"$JS.API.DIRECT.GET.KV_fit-fleet.$KV.fit-fleet.protocol", "$JS.API.STREAM.INFO.KV_fit-fleet",
			"$JS.API.CONSUMER.INFO.fit-work-" + of.Run + "-" + of.Name + ".workers",
			"$KV.fit-workers." + enemy.key + ".enemy",
		} {
			if err := enemy.nc.PublishRequest(question, subject, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !enemy.may("$JS.API.DIRECT.GET.KV_fit-fleet.$KV.fit-fleet.protocol", "") { // the others are answered by now
		t.Error("the fleet's protocol cannot be read")
	}
	for subject := range entries {
		if last(subject) != before[subject] {
			t.Errorf("an answer was written to %s", subject)
		}
	}
}

// stored is what the streams of the hub keep.
func stored(t *testing.T, dir string) []byte {
	t.Helper()
	var all []byte
	for _, store := range []string{filepath.Join(dir, "hub", "jetstream"), filepath.Join(dir, "store")} {
		_ = filepath.WalkDir(store, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				content, _ := os.ReadFile(name) // the hub removes streams by and by
				all = append(all, content...)
			}
			return nil
		})
	}
	return all
}

// A result counts only from who was given the attempt, whatever it says.
func TestForgedResultsDoNotCount(t *testing.T) {
	onBothServers(t, func(t *testing.T, w *world, enemy *peer) {
		coordinator := w.benchmark(nil, size{runs: 1}, "fleet", "--fleet", w.url, "--break-after", "2")
		of := enemy.pool()
		for _, name := range []string{
			"runs/t00/a/0/1", "runs/t00/b/0/1", "runs/t01/a/0/1", "runs/t01/b/0/1", "../../escape",
			strings.Repeat("x", 500_000),
		} {
			content, hash := packed(t, map[string]string{"agent.ndjson": "{}\n", "cwd/answer.txt": "42\n"})
			enemy.send(of.Run, name, map[string]any{"record": of.passed(name), "tree": content, "sha256": hash})
		}
		coordinator.says("results of key " + enemy.key + " are ignored")
		w.finish(coordinator)
		if _, err := os.Stat(filepath.Join(w.dir, "escape")); err == nil {
			t.Error("a result left the run directory")
		}
	})
}

// What a worker sends of an attempt that it was given is looked at before it counts: it is refused
// with the worker's key, and the attempt goes to another one.
func TestResultsAreBounded(t *testing.T) {
	const far = 253402300799000 // in the year 9999
	attacks := map[string]func(t *testing.T, of pool, name string) map[string]any{
		"a bomb": func(t *testing.T, of pool, name string) map[string]any {
			t.Helper()
			content, hash := bomb(t, 2<<30)
			return map[string]any{"record": of.passed(name), "tree": content, "sha256": hash}
		},
		"no trace": func(_ *testing.T, of pool, name string) map[string]any {
			return map[string]any{"record": of.passed(name)}
		},
		"a symlink": func(t *testing.T, of pool, name string) map[string]any {
			t.Helper()
			content, hash := packed(t, map[string]string{"agent.ndjson": "-> /etc/passwd", "cwd/x": "1"})
			return map[string]any{"record": of.passed(name), "tree": content, "sha256": hash}
		},
		"a fortune": func(t *testing.T, of pool, name string) map[string]any {
			t.Helper()
			content, hash := packed(t, map[string]string{"agent.ndjson": "{}\n"})
			record := of.passed(name)
			record["costUsd"] = 1e300
			return map[string]any{"record": record, "tree": content, "sha256": hash}
		},
		"the year 9999": func(t *testing.T, of pool, name string) map[string]any {
			t.Helper()
			content, hash := packed(t, map[string]string{"agent.ndjson": "{}\n"})
			record := of.passed(name)
			record["startMs"], record["endMs"] = far, far+1
			return map[string]any{"record": record, "tree": content, "sha256": hash}
		},
		"before 1970": func(t *testing.T, of pool, name string) map[string]any {
			t.Helper()
			content, hash := packed(t, map[string]string{"agent.ndjson": "{}\n"})
			record := of.passed(name)
			record["startMs"], record["endMs"] = -far, -1
			return map[string]any{"record": record, "tree": content, "sha256": hash}
		},
		"a large record": func(_ *testing.T, _ pool, _ string) map[string]any {
			return map[string]any{"recordFile": map[string]any{"name": "0011223344556677", "size": 700 << 20}}
		},
		"a file outside": func(t *testing.T, of pool, name string) map[string]any {
			t.Helper()
			content, hash := packed(t, map[string]string{"agent.ndjson": "{}\n"})
			record := of.passed(name)
			record["diffPath"] = "../\x1b[31m/diff.patch"
			return map[string]any{"record": record, "tree": content, "sha256": hash}
		},
		"another isolation": func(t *testing.T, of pool, name string) map[string]any {
			t.Helper()
			content, hash := packed(t, map[string]string{"agent.ndjson": "{}\n"})
			record := of.passed(name)
			record["isolation"] = "none"
			return map[string]any{"record": record, "tree": content, "sha256": hash}
		},
	}
	const most = 10 // results of an attempt with one key that are looked at
	onBothServers(t, func(t *testing.T, w *world, enemy *peer) {
		coordinator := w.benchmark(nil, size{runs: 1}, "fleet", "--fleet", w.url, "--break-after", "2",
			"--max-cost-usd", "1")
		of := enemy.pool()
		for what, attack := range attacks {
			got := enemy.take(of)
			result := attack(t, of, got.name)
			result["ticket"], result["nonce"] = got.Ticket, got.Ticket[:16]
			before := strings.Count(coordinator.out.String(), "was refused")
			enemy.send(of.Run, got.name, result)
			eventually(t, what+" is refused", func() bool {
				return strings.Count(coordinator.out.String(), "was refused") > before
			})
			_ = got.message.Ack()
		}
		again := enemy.take(of)
		refused := func() int { return strings.Count(coordinator.out.String(), "of "+again.name+" was refused") }
		for i := range 30 { // who was given an attempt once has no say in it forever
			before := refused()
			enemy.send(of.Run, again.name, map[string]any{
				"record": of.passed(again.name), "ticket": again.Ticket, "nonce": fmt.Sprintf("%016x", i),
			})
			if before < most {
				eventually(t, "the coordinator has looked at it", func() bool { return refused() > before })
			}
		}
		_ = again.message.Ack()
		if said := coordinator.out.String(); !strings.Contains(said, "worker enemy with key "+enemy.key) {
			t.Errorf("the coordinator says %s", shorten(said))
		}
		w.finish(coordinator)
		if n := refused(); n != most {
			t.Errorf("%d results of one attempt and key were refused, want %d", n, most)
		}
	})
}

// Among others, one key does not decide what the plan asks for, drown what others say, stop the
// experiment, or use up the errors that cells may have.
func TestOneKeyAmongOthers(t *testing.T) {
	onBothServers(t, func(t *testing.T, w *world, enemy *peer) {
		m := w.machine(1, 0)
		w.work(m)
		for i := range 2000 {
			about := fmt.Appendf(nil, `{"protocol":2,"name":"e%d","fit":"1.2.3","slots":1,"agents":{"builtin":"9"},`+
				`"isolation":["bwrap","none"]}`, i)
			if err := enemy.nc.Publish(fmt.Sprintf("$KV.fit-workers.%s.e%d", enemy.key, i), about); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.model.cmd.Process.Signal(syscall.SIGSTOP); err != nil { // agents wait until the enemy had its say
			t.Fatal(err)
		}
		coordinator := w.benchmark(nil, size{runs: 3}, "fleet", "--fleet", w.url, "--break-after", "2")
		of := enemy.pool()
		if version := of.Needs.Agents["builtin"]; version == "9" {
			t.Errorf("the plan asks for the agent's version %s", version)
		}
		for i := 0; !strings.Contains(coordinator.out.String(), "errors of its key do not count"); i++ {
			got := enemy.take(of)
			enemy.send(of.Run, got.name, map[string]any{
				"record": map[string]any{"verdict": "error", "errorClass": "auth", "errorMessage": "\x1b[31mno money"},
				"ticket": got.Ticket, "nonce": fmt.Sprintf("%016x", i),
			})
			_ = got.message.Ack()
		}
		for i := range 200 {
			for _, subject := range []string{
				fmt.Sprintf("fit.done.%s.%s.%d", of.Run, enemy.key, i),
				fmt.Sprintf("fit.file.%s.%s.%d", of.Run, enemy.key, i),
				fmt.Sprintf("fit.event.%s.%s", of.Run, enemy.key),
			} {
				if err := enemy.nc.Publish(subject, []byte("{}")); err != nil {
					t.Fatal(err)
				}
			}
		}
		coordinator.says("key " + enemy.key + " floods the hub")
		if err := m.model.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		<-coordinator.over
		if code := coordinator.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("the coordinator ended with %d", code)
		}
		records, contents := w.counted("fleet")
		errorsOf := map[ledger.Cell]int{}
		for _, r := range contents.Records {
			if r.SignedBy == enemy.key {
				errorsOf[r.Cell()]++
			}
		}
		for cell, r := range records {
			if r.Worker != "w1" || r.Verdict == ledger.Error || errorsOf[cell] > 1 {
				t.Errorf("%s: %s by %s, after %d errors of the enemy", r.Key(), r.Verdict, r.Worker, errorsOf[cell])
			}
		}
		if len(records) != 12 || len(errorsOf) == 0 {
			t.Errorf("%d cells count, %d had errors of the enemy", len(records), len(errorsOf))
		}
	})
}

// A worker that lies about a verdict, with everything that belongs to it, is found by grading its
// work again: nothing is claimed from the run directory.
func TestALieIsFoundByGradingAgain(t *testing.T) {
	onBothServers(t, func(t *testing.T, w *world, enemy *peer) {
		coordinator := w.benchmark(nil, size{runs: 1}, "fleet", "--fleet", w.url, "--regrade-sample", "1")
		of := enemy.pool()
		if of.Needs.Isolation == "none" {
			testenv.Missing(t, "bubblewrap, in which work is graded again")
		}
		got := enemy.take(of)
		content, hash := packed(t, map[string]string{"agent.ndjson": "{}\n", "cwd/answer.txt": "41\n"})
		enemy.send(of.Run, got.name, map[string]any{
			"record": of.passed(got.name), "tree": content, "sha256": hash, "ticket": got.Ticket,
			"nonce": got.Ticket[:16],
		})
		coordinator.says("nothing is claimed from this run directory; the result was signed with key " + enemy.key)
		_ = got.message.Ack()
		w.work(w.machine(1, 0))
		<-coordinator.over
		_, contents := w.counted("fleet")
		for _, r := range contents.Records {
			if r.Worker == "enemy" && (r.Regraded != ledger.Fail || r.SignedBy != enemy.key) {
				t.Errorf("%s: regraded %q, signed by %q", r.Key(), r.Regraded, r.SignedBy)
			}
			if r.Worker == "w1" && r.Verdict == ledger.Pass && r.Regraded != ledger.Pass {
				t.Errorf("%s: an honest pass was graded again as %q: %v", r.Key(), r.Regraded, r.Notes)
			}
		}
		report := w.start(nil, nil, "benchmark", "compare", "fleet")
		<-report.over
		if said := report.out.String(); !strings.Contains(said, enemy.key) {
			t.Errorf("compare says %s", said)
		}
	})
}

// Somebody who takes attempts and does nothing is noticed, and the attempts go to others.
func TestLeasesThatDoNotMoveAreNoticed(t *testing.T) {
	onBothServers(t, func(t *testing.T, w *world, enemy *peer) {
		coordinator := w.benchmark(nil, size{runs: 1}, "fleet", "--fleet", w.url)
		of := enemy.pool()
		held := enemy.take(of)
		keep := time.NewTicker(time.Second)
		defer keep.Stop()
		eventually(t, "the coordinator notices", func() bool {
			select {
			case <-keep.C:
				_ = held.message.InProgress()
			default:
			}
			return strings.Contains(coordinator.out.String(), "no worker says that it is making them")
		})
		w.finish(coordinator)
	})
}

// An object that is not what its name says is not used by workers, and is replaced by its owner.
func TestAWrongObjectIsReplaced(t *testing.T) {
	onBothServers(t, func(t *testing.T, w *world, _ *peer) {
		coordinator := w.benchmark(nil, size{runs: 1}, "fleet", "--fleet", w.url)
		owner := join(t, w.url)
		owner.pool()
		store, err := owner.js.ObjectStore(t.Context(), "fit-trees")
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
		w.finish(coordinator)
		if said := coordinator.out.String(); !strings.Contains(said, "was not what its name says") {
			t.Errorf("the coordinator says %s", shorten(said))
		}
	})
}

// Experiments bring no permissions: a worker runs nothing without isolation unless its owner says
// so.
func TestAWorkerDemandsIsolation(t *testing.T) {
	onBothServers(t, func(t *testing.T, w *world, _ *peer) {
		w.work(w.machine(1, 0))
		coordinator := w.benchmark(nil, size{runs: 1}, "fleet", "--fleet", w.url, "--isolation", "none")
		coordinator.says("it has no isolation none")
		if records := readFile(w, "fleet", experiment.LedgerFile); records != "" {
			t.Errorf("it ran %s", records)
		}
	})
}

// A token on the command line is not there for long, and a revoked key is refused.
func TestKeysStayPrivateAndCanBeRevoked(t *testing.T) {
	w := &world{
		t:       t,
		dir:     t.TempDir(),
		address: "127.0.0.1",
		model:   testenv.FreePort(t),
	}
	var err error
	if w.binary, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	w.family(1)
	w.serveHub(testenv.FreePort(t), 5*time.Second)
	token := strings.TrimSpace(readFile(w, "hub", "worker.url"))
	worker := w.start(nil, nil, "fleet", "work", token, "--name", "old", "--dir", filepath.Join(w.dir, "old"))
	worker.says("at a time")
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", worker.cmd.Process.Pid))
	at, parseErr := url.Parse(token)
	if err != nil || parseErr != nil || bytes.Contains(line, []byte(at.User.Username())) {
		t.Errorf("the command line is %q, %v %v", line, err, parseErr)
	}
	<-w.start(nil, nil, "fleet", "key", "revoke", "worker", "--dir", "hub").over
	<-worker.over
	said := worker.out.String()
	if worker.cmd.ProcessState.ExitCode() == 0 || !strings.Contains(said, "it was revoked") {
		t.Errorf("a worker with a revoked key says %s", said)
	}
	eventually(t, "the key is refused", func() bool {
		again := w.start(nil, nil, "fleet", "status", "--fleet", token)
		<-again.over
		return strings.Contains(again.out.String(), "refused the token")
	})
	for _, name := range []string{"coordinator.url", "observer.url", "keys.json"} {
		info, err := os.Stat(filepath.Join(w.dir, "hub", name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
}
