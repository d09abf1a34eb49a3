package local

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// pressureDir is where the kernel says how long programs waited for the machine.
const pressureDir = "/proc/pressure"

// waits is how long programs of the machine have waited so far, by what they waited for.
type waits struct {
	at   time.Time
	some map[string]time.Duration
}

// readWaits reads the kernel's counters; what it does not tell is left out.
func readWaits(dir string) waits {
	w := waits{at: time.Now(), some: map[string]time.Duration{}}
	for _, what := range []string{"cpu", "memory", "io"} {
		text, err := os.ReadFile(filepath.Join(dir, what))
		if err != nil {
			continue
		}
		line, _, _ := strings.Cut(string(text), "\n") // some avg10=… avg60=… avg300=… total=MICROSECONDS
		_, total, found := strings.Cut(line, "total=")
		if us, err := strconv.ParseInt(strings.TrimSpace(total), 10, 64); found && err == nil {
			w.some[what] = time.Duration(us) * time.Microsecond
		}
	}
	return w
}

// until returns the share of the time until later in which some program waited, or nil where
// nothing is known.
func (w waits) until(later waits) map[string]float64 {
	took := later.at.Sub(w.at)
	if took <= 0 {
		return nil
	}
	var shares map[string]float64
	for what, before := range w.some {
		after, known := later.some[what]
		if !known {
			continue
		}
		if shares == nil {
			shares = map[string]float64{}
		}
		share := min(1, max(0, float64(after-before)/float64(took)))
		shares[what] = float64(int(share*1000)) / 1000
	}
	return shares
}
