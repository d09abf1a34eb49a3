package view

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/report/versus/versustest"
	"github.com/fit-eval/fit/ledger"
)

// A page says what the user's key knows about the results, as the commands do.
func TestAPageSaysThatASignatureIsGone(t *testing.T) {
	key, err := ledger.CreateKey(filepath.Join(t.TempDir(), "ledger.key"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	signed := versustest.Three([3]string{"one", "two", "three"}, "claude-sonnet-4-5")
	signed.Key = key
	if err := signed.Write(dir); err != nil {
		t.Fatal(err)
	}
	p := openAs(t, key, dir)
	address := "/api/experiments/" + p.list()[0].ID
	notes := func() string {
		t.Helper()
		var answer experimentAnswer
		p.read(address, &answer)
		return strings.Join(answer.Notes, "\n")
	}
	if said := notes(); said != "" {
		t.Errorf("of results that are signed: %s", said)
	}
	if err := os.Remove(filepath.Join(dir, ledger.NoteFile(experiment.LedgerFile))); err != nil {
		t.Fatal(err)
	}
	want := "run/results.jsonl is not signed: its signature was removed; the records are still those that your key " +
		"signed"
	if said := notes(); said != want {
		t.Errorf("the page says %q, want %q", said, want)
	}
}
