package local

import (
	"maps"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
)

// TestPressureIsTheShareOfTheTimeThatProgramsWaited: what the kernel counts becomes a share, and
// what it does not tell is unknown.
func TestPressureIsTheShareOfTheTimeThatProgramsWaited(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"cpu":    "some avg10=98.79 avg60=98.75 avg300=96.65 total=3000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
		"memory": "nonsense\n",
	})
	later := readWaits(dir)
	before := waits{at: later.at.Add(-4 * time.Second), some: map[string]time.Duration{"cpu": time.Second, "io": 0}}
	if got := before.until(later); !maps.Equal(got, map[string]float64{"cpu": 0.5}) {
		t.Errorf("%v", got)
	}
	if got := readWaits(t.TempDir()).until(readWaits(t.TempDir())); got != nil {
		t.Errorf("without a word of the kernel: %v", got)
	}
}

func TestARecordSaysHowBusyTheMachineWas(t *testing.T) {
	r, _ := attemptOf(t, oneTask(t, nil), solves, experiment.Setup{})
	known := len(readWaits(pressureDir).some)
	if r.Concurrency != 1 || len(r.Pressure) != known {
		t.Errorf("concurrency %d, pressure %v, the kernel tells %d", r.Concurrency, r.Pressure, known)
	}
}
