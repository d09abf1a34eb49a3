package view

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/notes"
	"github.com/fit-eval/fit/ledger"
)

// writer is a page of a user with a name and a key, on a run directory.
func writer(t *testing.T) (p *page, base, dir string) {
	t.Helper()
	dir = runDirectory(t, filepath.Join(t.TempDir(), "run"))
	p = open(t, dir)
	p.server.cfg.Author = "ada"
	p.server.cfg.NewKey = func() *ledger.SigningKey {
		key, err := ledger.CreateKey(filepath.Join(t.TempDir(), "ledger.key"))
		if err != nil {
			t.Error(err)
		}
		return key
	}
	return p, "/api/experiments/" + p.list()[0].ID, dir
}

// send sends JSON as a page of an origin does; an empty one is our own.
func (p *page) send(address, body, origin string) (int, []byte) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.base+address, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Origin", p.base)
	if origin != "" {
		request.Header.Set("Origin", origin)
	}
	response, err := p.client.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	var content bytes.Buffer
	_, _ = content.ReadFrom(response.Body)
	return response.StatusCode, content.Bytes()
}

// A note is kept beside the results with the user's name and signature, marks its cell in the grid,
// and can be taken away.
func TestNotesOfACell(t *testing.T) {
	p, base, _ := writer(t)
	body := `{"task":"fix-add-00","arm":"after","run":1,"text":"<img src=x onerror=alert(1)>","tags":["flaky"]}`
	if status, content := p.send(base+"/notes", body, ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, content)
	}
	var of cellAnswer
	p.read(base+"/cells/fix-add-00/after/1", &of)
	if len(of.Notes) != 1 || of.Notes[0].By != "ada" || of.Notes[0].Seal != notes.Own || of.Notes[0].Stale {
		t.Fatalf("the cell has the notes %+v", of.Notes)
	}
	var grid cellsAnswer
	p.read(base+"/cells", &grid)
	for _, c := range grid.Cells {
		want := c.Task == "fix-add-00" && c.Arm == "after" && c.Run == 1
		if noted := c.Notes == 1 && len(c.Tags) == 1; noted != want {
			t.Errorf("%s/%s/%d has %d notes and the tags %v", c.Task, c.Arm, c.Run, c.Notes, c.Tags)
		}
	}
	if status, content := p.send(base+"/notes", `{"removes":"`+of.Notes[0].ID+`"}`, ""); status != http.StatusOK ||
		!bytes.Contains(content, []byte(`"notes":[]`)) {
		t.Errorf("%d %s", status, content)
	}
}

// A note about a result that was replaced since says so.
func TestANoteIsAboutOneResult(t *testing.T) {
	p, base, dir := writer(t)
	about := notes.Note{Task: "fix-add-00", Arm: "after", Record: "gone", Text: "x"}
	if _, err := notes.Add(dir, about, nil); err != nil {
		t.Fatal(err)
	}
	var of cellAnswer
	p.read(base+"/cells/fix-add-00/after/0", &of)
	if len(of.Notes) != 1 || !of.Notes[0].Stale || of.Notes[0].Seal != notes.Unsigned {
		t.Errorf("%+v", of.Notes)
	}
}

// Only fit's own page writes notes, about cells that are there.
func TestWhoWritesNotes(t *testing.T) {
	p, base, dir := writer(t)
	const good = `{"task":"fix-add-00","arm":"after","run":0,"text":"x"}`
	for what, one := range map[string]struct {
		body, origin string
		want         int
	}{
		"another page":    {good, "http://evil.example", http.StatusForbidden},
		"an unknown cell": {`{"task":"../..","arm":"after","run":0,"text":"x"}`, "", http.StatusNotFound},
		"nothing":         {`{"task":"fix-add-00","arm":"after","run":0}`, "", http.StatusBadRequest},
		"no JSON":         {`task=x`, "", http.StatusBadRequest},
		"much":            {`{"text":"` + strings.Repeat("x", maxBody) + `"}`, "", http.StatusBadRequest},
	} {
		t.Run(what, func(t *testing.T) {
			if status, content := p.send(base+"/notes", one.body, one.origin); status != one.want {
				t.Errorf("%d %s", status, content)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, notes.File)); err == nil {
		t.Error("something was written")
	}
}

// A view that was saved is in the answer about its experiment.
func TestSavedViews(t *testing.T) {
	p, base, _ := writer(t)
	const body = `{"view":"tab=cost&q=x","text":"dear ones"}`
	if status, content := p.send(base+"/notes", body, ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, content)
	}
	var answer experimentAnswer
	p.read(base, &answer)
	if len(answer.Views) != 1 || answer.Views[0].View != "tab=cost&q=x" || answer.Views[0].Text != "dear ones" {
		t.Errorf("%+v", answer.Views)
	}
}

// A cell in a file holds nothing of other cells.
func TestACellAsAFile(t *testing.T) {
	p, base, _ := writer(t)
	response, err := p.client.Get(p.base + base + "/cells/fix-add-00/after/1/file")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if got := response.Header.Get("Content-Disposition"); got != "attachment; filename=run-fix-add-00-after-1.html" {
		t.Errorf("Content-Disposition: %s", got)
	}
	var content bytes.Buffer
	_, _ = content.ReadFrom(response.Body)
	_, data, _ := strings.Cut(content.String(), `id="fit-data">`)
	data, _, _ = strings.Cut(data, "</script>")
	var held frozen
	if err := json.Unmarshal([]byte(data), &held); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(held.Start, "/fix-add-00/after/1") {
		t.Errorf("it begins at %s", held.Start)
	}
	pages := 0
	for address := range held.Responses {
		if !strings.HasSuffix(address, "/cells/fix-add-00/after/1") &&
			!strings.Contains(address, "fix-add-00%2Fafter%2F1%2F") {
			t.Errorf("it holds %s", address)
		}
		if strings.Contains(address, "/page?") {
			pages++
		}
	}
	if pages == 0 {
		t.Error("it holds no transcript")
	}
}

// Two arms of two experiments are compared as one experiment is, and their cells are their own.
func TestTwoExperimentsAreCompared(t *testing.T) {
	top := t.TempDir()
	runDirectory(t, filepath.Join(top, "june"))
	runDirectory(t, filepath.Join(top, "july"))
	p := open(t, top)
	ids := map[string]string{}
	for _, e := range p.list() {
		ids[e.Name] = e.ID
	}
	base := "/api/experiments/" + ids["june"] + ":before%7C" + ids["july"] + ":after"
	var answer experimentAnswer
	p.read(base, &answer)
	if answer.Comparison == nil || answer.Comparison.Decision.Effect != 1 || answer.Experiment.Kind != kindCompared {
		t.Fatalf("%+v", answer)
	}
	var grid cellsAnswer
	p.read(base+"/cells", &grid)
	for _, c := range grid.Cells {
		want := cellOf{Experiment: ids["june"], Arm: "before"}
		if c.Arm != grid.Arms[0] {
			want = cellOf{Experiment: ids["july"], Arm: "after"}
		}
		if c.Of == nil || *c.Of != want {
			t.Errorf("%s/%s/%d belongs to %+v", c.Task, c.Arm, c.Run, c.Of)
		}
	}
	for address, want := range map[string]int{
		ids["june"] + ":before%7Cnowhere:after":                                 http.StatusNotFound,
		ids["june"] + ":before%7C":                                              http.StatusBadRequest,
		ids["june"] + ":a%7C" + ids["july"] + ":a%7C" + ids["july"] + ":a":      http.StatusBadRequest,
		ids["june"] + ":before%7C" + ids["july"] + ":after/versus":              http.StatusConflict,
		ids["june"] + ":before%7C" + ids["july"] + ":after/notes":               http.StatusOK,
		ids["june"] + ":before%7C" + ids["july"] + ":after/cells/x/y/0/file":    http.StatusConflict,
		ids["june"] + ":before%7C" + ids["july"] + ":after/forest":              http.StatusOK,
		ids["june"] + ":before%7C" + ids["july"] + ":after/plan?effect=1&runs=": http.StatusBadRequest,
	} {
		t.Run(address, func(t *testing.T) {
			if status, content := p.get("/api/experiments/" + address); status != want {
				t.Errorf("%d %s", status, content)
			}
		})
	}
	for pair, want := range map[string]string{
		ids["june"] + ":before%7C" + ids["june"] + ":before": "is compared with itself",
		ids["june"] + ":none%7C" + ids["july"] + ":after":    `june has no arm "none"; it has`,
	} {
		var refused experimentAnswer
		p.read("/api/experiments/"+pair, &refused)
		if !strings.Contains(refused.Experiment.Problem, want) || strings.Contains(refused.Experiment.Problem, top) {
			t.Errorf("%s: %s", pair, refused.Experiment.Problem)
		}
	}
}
