package results_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/fit-eval/fit/internal/report/foreign"
)

// inspectHeader is a log as a whole.
func inspectHeader(runs []one) map[string]any {
	return map[string]any{
		"version": 2,
		"status":  "success",
		"eval": map[string]any{
			"task":    "arithmetic",
			"model":   "provider/" + runs[0].arm,
			"solver":  "generate",
			"dataset": map[string]any{"name": "sums", "samples": 24},
			"config":  map[string]any{"epochs": 3, "epochs_reducer": []string{"mean"}},
		},
		"results": map[string]any{"total_samples": len(runs)},
	}
}

func inspectSample(r *one) map[string]any {
	value := "I"
	if r.pass {
		value = "C"
	}
	sample := map[string]any{
		"id":          r.task,
		"epoch":       r.run + 1,
		"input":       "attachment://h" + r.task,
		"target":      "4",
		"attachments": map[string]any{"h" + r.task: "what is 2 and 2, " + r.task},
		"scores":      map[string]any{"match": map[string]any{"value": value, "answer": "4"}},
		"total_time":  r.seconds,
		"model_usage": map[string]any{"provider/" + r.arm: map[string]any{
			"input_tokens": r.input, "output_tokens": r.output, "total_cost": r.cost,
		}},
		"messages": []any{map[string]any{"role": "user", "content": `a \"quoted\" NaN`}, map[string]any{"role": "assistant"}},
	}
	if r.errored {
		sample["scores"], sample["error"] = nil, map[string]any{"message": "503 from the service"}
	}
	return sample
}

// member is one of an archive.
type member struct {
	name    string
	content []byte
	zstd    bool
}

func asJSON(t *testing.T, value any) []byte {
	t.Helper()
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func inspectMembers(t *testing.T, runs []one) []member {
	t.Helper()
	var all []member
	for i := range runs {
		all = append(all, member{
			name:    fmt.Sprintf("samples/%s_epoch_%d.json", runs[i].task, runs[i].run+1),
			content: asJSON(t, inspectSample(&runs[i])),
			zstd:    i%2 == 1,
		})
	}
	return append(all, member{name: "header.json", content: asJSON(t, inspectHeader(runs))})
}

func writeArchive(t testing.TB, path string, members []member) string {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	archive := zip.NewWriter(file)
	archive.RegisterCompressor(93, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) })
	for _, m := range members {
		method := zip.Deflate
		if m.zstd {
			method = 93
		}
		w, err := archive.CreateHeader(&zip.FileHeader{Name: m.name, Method: method})
		if err == nil {
			_, err = w.Write(m.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func writeInspect(t *testing.T, dir string, runs []one) string {
	t.Helper()
	return writeArchive(t, filepath.Join(dir, runs[0].arm+".eval"), inspectMembers(t, runs))
}

func writeInspectJSON(t *testing.T, dir string, runs []one) string {
	t.Helper()
	header, samples := inspectHeader(runs), []any{}
	for i := range runs {
		samples = append(samples, inspectSample(&runs[i]))
	}
	text := []byte(`{"version": 2, "status": "success", "metrics": NaN, "samples": `)
	text = append(text, asJSON(t, samples)...)
	delete(header, "version")
	delete(header, "status")
	text = append(append(text, ','), bytes.TrimPrefix(asJSON(t, header), []byte("{"))...)
	return write(t, filepath.Join(dir, runs[0].arm+".json"), text)
}

// changed is a log one of whose members is another.
func changed(members []member, name string, change func(*member)) []member {
	for i := range members {
		if members[i].name == name {
			change(&members[i])
		}
	}
	return members
}

func TestALogThatIsNotWholeSaysSo(t *testing.T) {
	t.Parallel()
	runs := runsOf("m", 1.1)
	with := func(change func(log map[string]any)) []member {
		return changed(inspectMembers(t, runs), "header.json", func(m *member) {
			var log map[string]any
			if err := json.Unmarshal(m.content, &log); err != nil {
				t.Fatal(err)
			}
			change(log)
			m.content = asJSON(t, log)
		})
	}
	doubts := func(members []member) string {
		records := read(t, writeArchive(t, filepath.Join(t.TempDir(), "x.eval"), members), foreign.Options{})
		return strings.Join(records[0].Imported.Doubts, "; ")
	}
	for want, members := range map[string][]member{
		"":                             inspectMembers(t, runs),
		"the run ended with cancelled": with(func(log map[string]any) { log["status"] = "cancelled" }),
		"the run ended with error (out of money)": with(func(log map[string]any) {
			log["status"], log["error"] = "error", map[string]any{"message": "out of money"}
		}),
		"72 of 100 samples are in the log": with(func(log map[string]any) {
			log["results"] = map[string]any{"total_samples": 100}
		}),
		"a subset of the samples was run": with(func(log map[string]any) {
			log["eval"].(map[string]any)["config"] = map[string]any{"limit": 24}
		}),
		"72 of 75 samples are in the log; the run ended with cancelled": with(func(log map[string]any) {
			log["status"], log["results"] = "cancelled", nil
			log["eval"].(map[string]any)["dataset"] = map[string]any{"sample_ids": make([]int, 25)}
		}),
		"the log was cut: the run did not end": changed(inspectMembers(t, runs), "header.json", func(m *member) {
			m.name, m.content = "_journal/start.json", bytes.Replace(m.content, []byte("results"), []byte("nothing"), 1)
		}),
	} {
		t.Run(want, func(t *testing.T) {
			if got := doubts(members); got != want {
				t.Errorf("it says %q, want %q", got, want)
			}
		})
	}
}

func TestAHostileLogIsRefused(t *testing.T) {
	t.Parallel()
	runs := runsOf("m", 0.5)[:3]
	sample := "samples/t00_epoch_1.json"
	content := func(text string) []member {
		return changed(inspectMembers(t, runs), sample, func(m *member) { m.content = []byte(text) })
	}
	named := func(name string) []member {
		return append(inspectMembers(t, runs), member{name: name, content: []byte("{}")})
	}
	for want, members := range map[string][]member{
		`the member "../../x.json" is outside of the archive`:       named("../../x.json"),
		`the member "/etc/x" is outside of the archive`:             named("/etc/x"),
		`the member "` + sample + `" is there twice`:                named(sample),
		"x_epoch_1.json: it is no sample: it has no id":             named("samples/x_epoch_1.json"),
		"t00_epoch_1.json: it is not JSON":                          content(`{"id": "t00", "epoch": 1`),
		"it is no sample":                                           content(`["id"]`),
		"no epoch from 1 on":                                        content(`{"id": "t00", "epoch": 0}`),
		"no epoch from 1 on and up to 1000000":                      content(`{"id": "t00", "epoch": 9999999999999}`),
		"task arithmetic/t01, run 0 of":                             nil,
		"it unpacks to more than 134217728 bytes":                   content(strings.Repeat(" ", 129<<20)),
		"there are several scores: match, model_graded; choose one": content(`{"id": 9, "epoch": 1, "scores": {"model_graded": {"value": 1}}}`),
		"is neither a number nor correct":                           content(`{"id": 9, "epoch": 1, "scores": {"match": {"value": "perhaps"}}}`),
		"the score 7 is not between 0 and 1":                        content(`{"id": 9, "epoch": 1, "scores": {"match": {"value": 7}}}`),
		"the log is invalidated: its authors withdrew its results": changed(inspectMembers(t, runs), "header.json",
			func(m *member) { m.content = []byte(`{"version": 2, "invalidated": true}`) }),
		"header.json: it ends too early": changed(inspectMembers(t, runs), "header.json",
			func(m *member) { m.content = m.content[:len(m.content)/2] }),
	} {
		t.Run(want, func(t *testing.T) {
			if members == nil {
				twice := runs[0]
				twice.task = "t01"
				members = append(inspectMembers(t, runs), member{
					name:    "samples/y.json",
					content: asJSON(t, inspectSample(&twice)),
				}, member{name: "samples/z.json", content: asJSON(t, inspectSample(&twice))})
			}
			_, err := foreign.Read(writeArchive(t, filepath.Join(t.TempDir(), "x.eval"), members), foreign.Options{})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
	bomb := inspectMembers(t, runs)
	for i := range 3 {
		text := strings.Repeat(" ", 100<<20) + fmt.Sprintf(`{"id": "b%d", "epoch": 1, "scores": {"match": {"value": 1}}}`, i)
		bomb = append(bomb, member{name: fmt.Sprintf("samples/b%d.json", i), content: []byte(text)})
	}
	_, err := foreign.Read(writeArchive(t, filepath.Join(t.TempDir(), "x.eval"), bomb), foreign.Options{})
	if err == nil || !strings.Contains(err.Error(), "the archive unpacks to more than 500 times its size") {
		t.Errorf("of a bomb it says %v", err)
	}
	whole, err := os.ReadFile(writeInspect(t, t.TempDir(), runs))
	if err != nil {
		t.Fatal(err)
	}
	_, err = foreign.Read(write(t, filepath.Join(t.TempDir(), "x.eval"), whole[:len(whole)/2]), foreign.Options{})
	if err == nil || !strings.Contains(err.Error(), "the archive was cut, or is none") {
		t.Errorf("of half a log it says %v", err)
	}
}

func TestScorersEpochsAndFlagsOfALog(t *testing.T) {
	t.Parallel()
	sample := func(id int, rest string) member {
		text := fmt.Sprintf(`{"id": %d, "epoch": 1, "input": "x", "target": "y", %s}`, id, rest)
		return member{name: fmt.Sprintf("samples/%d_epoch_1.json", id), content: []byte(text)}
	}
	header := inspectMembers(t, runsOf("m", 1))
	members := []member{
		header[len(header)-1],
		sample(1, `"scores": {"a": {"value": {"x": 1, "y": "I"}}, "b": {"value": "P"}}, "limit": {"type": "token"}`),
		sample(2, `"scores": {"a": {"value": {"x": 0, "y": "C"}}, "b": {"value": NaN}}, "limit": {"type": "custom"}`),
		sample(3, `"scores": {"a": {"value": {"x": 1, "y": true}}, "b": {"value": "N"}}, "invalidation": {"author": "x"}`),
		sample(4, `"scores": {"a": {"value": {"x": 1, "y": "yes"}}, "b": {"value": 1}}, "error": {"message": "late"}`),
		sample(5, `"scores": {}, "error": {"message": "early"}`),
	}
	path := writeArchive(t, filepath.Join(t.TempDir(), "x.eval"), members)
	for scorer, want := range map[string]string{
		"a/x": "pass fail error error error", "a/y": "fail pass error error error", "b": "fail error error error error",
	} {
		t.Run(scorer, func(t *testing.T) {
			var got []string
			records := read(t, path, foreign.Options{Score: scorer})
			for _, r := range records {
				got = append(got, r.Verdict)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%q, want %q", got, want)
			}
			if records[0].Outcome != "budget" || records[1].Outcome != "" || len(records[1].Notes) != 1 ||
				records[0].Imported.Fractional != (scorer == "b") || records[0].TaskID != "1" {
				t.Errorf("%+v", records[0])
			}
		})
	}
	members[0].content = bytes.Replace(members[0].content, []byte(`"epochs": 3`), []byte(`"score_on_error": true`), 1)
	path = writeArchive(t, filepath.Join(t.TempDir(), "x.eval"), members)
	if r := read(t, path, foreign.Options{Score: "b"})[3]; r.Verdict != "error" || r.ErrorMessage != "late" {
		t.Errorf("a sample that was scored although it ended in an error: %+v", r)
	}
	if _, err := foreign.Read(path, foreign.Options{Score: "c"}); err == nil ||
		!strings.Contains(err.Error(), `there is no scorer "c"; there are a/x, a/y, b`) {
		t.Errorf("of a scorer that is not there it says %v", err)
	}
}

func TestLogsOfADirectoryAreArmsAndRepetitions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, arm := range []string{"m", "m", "n"} {
		writeArchive(t, filepath.Join(dir, fmt.Sprintf("%d.eval", i)), inspectMembers(t, runsOf(arm, 0.5)))
	}
	arms := map[string]int{}
	for _, r := range read(t, dir, foreign.Options{}) {
		if arms[r.Arm]++; strings.Contains(r.TaskID, "/") {
			t.Fatalf("the task is called %s", r.TaskID)
		}
	}
	if arms["provider/m generate"] != 144 || arms["provider/n generate"] != 72 || len(arms) != 2 {
		t.Errorf("%v", arms)
	}
}

// A log with more members than an archive without zip64 can have.
func TestALogOfManySamples(t *testing.T) {
	t.Parallel()
	const samples = 66_000
	path := filepath.Join(t.TempDir(), "x.eval")
	writeLargeLog(t, path, samples, func(i int) []byte {
		return fmt.Appendf(nil, `{"id": %d, "epoch": 1, "scores": {"match": {"value": %d}}}`, i, i%2)
	})
	runs, err := foreign.Read(path, foreign.Options{})
	if err != nil || runs.Len() != samples {
		t.Fatalf("%v: %d runs", err, runs.Len())
	}
	for _, i := range []int{0, 65_535, 65_536, samples - 1} {
		if r := runs.Record(i); r.TaskID != fmt.Sprint(i) || (r.Verdict == "pass") != (i%2 == 1) {
			t.Errorf("sample %d: %s %s", i, r.TaskID, r.Verdict)
		}
	}
}

func TestADamagedFileIsRefused(t *testing.T) {
	t.Parallel()
	logs := t.TempDir()
	writeInspect(t, logs, runsOf("m", 0.5))
	write(t, filepath.Join(logs, "y.eval"), nil)
	if _, err := foreign.Read(logs, foreign.Options{}); err == nil || !strings.Contains(err.Error(), "y.eval: ") {
		t.Errorf("of a directory with an empty log it says %v", err)
	}
	for text, want := range map[string]string{
		`{"version": 2, "status": "success", "samples": [{"id": 1, "epoch": 1, "scores": {}}, {"id": 2, "ep`: "samples: it ends too early",
		`{"version": 2, "status": "success", "invalidated": true, "samples": []}`:                            "the log is invalidated",
		`{"promptIdx": 0, "success": true}` + "\n" + `{"promptIdx": 0, "succ`:                                "line 2: the document ends too early",
		"evalId: x\nresults:\n  results:\n    - {promptIdx: 0, success: tr":                                  "is not closed",
		"evalId: x\na: &a [" + strings.Repeat("x,", 999) + "x]\nb: &b [" + strings.Repeat("*a,", 999) + "x]\nc: [" +
			strings.Repeat("*b,", 999) + "x]\n": "too large with its aliases expanded",
		`{"task": "t", "pass": true}` + "\n" + `{"task": "` + strings.Repeat("x", 17<<20) + `"}`: "a line is longer than 16777216 bytes",
		"task,pass\nt,1\n\"u":                                "must end with one",
		`{"started_at": "", "task_name": "t", "verifier_res`: "",
		`{"resolved_ids": ["a"], "unresolved_ids": "b"}`:     "unresolved_ids is a string",
		`{"resolved_ids": ["a"], "unresolved_ids": ["b`:      "",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := foreign.Read(write(t, filepath.Join(t.TempDir(), "x"), []byte(text)), foreign.Options{})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.80s: %v, want %s", text, err, want)
			}
		})
	}
}
