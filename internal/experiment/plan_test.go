package experiment

import (
	"strings"
	"testing"
)

// What cannot have a directory is refused before anything is paid.
func TestCellsWithoutADirectoryAreRefused(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		strings.Repeat("i", 200): "",
		strings.Repeat("i", 240): "whose name has 254 bytes, more than 240",
		strings.Repeat("/", 80):  "give the task or the arm a shorter name",
	} {
		plan := planOf(t, 1, 1, "an-arm-name")
		plan.Tasks[0].ID = id
		err := plan.Seal()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.10s: %v, want %q", id, err, want)
		}
	}
}
