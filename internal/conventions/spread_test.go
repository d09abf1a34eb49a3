package conventions

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestAProtocolIsKnownInFewPlaces: everything that is special about a model protocol stands in its
// own file of each package that speaks it. One protocol, which is also the name of an agent, stands
// for all: a second list of protocols, or a second place that treats one as special, names it.
func TestAProtocolIsKnownInFewPlaces(t *testing.T) {
	const most = 6
	word := []byte("gem" + "ini")
	var found []string
	for _, file := range goFiles(t) {
		if !file.test && bytes.Contains(bytes.ToLower(file.source), word) {
			found = append(found, file.path)
		}
	}
	if slices.Sort(found); len(found) == 0 || len(found) > most {
		t.Errorf("%d files name %s, at most %d may; use package wire's Protocol instead:\n%s", len(found), word, most,
			strings.Join(found, "\n"))
	}
}
