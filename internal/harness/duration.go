package harness

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

var isoDuration = lazyregexp.New(`^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$`)

// Wait returns how long a recess with the trigger elapsed lasts.
func (t *Trigger) Wait() (time.Duration, error) { return parseDuration(t.Elapsed) }

// parseDuration reads an ISO-8601 duration of whole days, hours, minutes and seconds. Years and
// months are refused, because their length depends on the date.
func parseDuration(text string) (time.Duration, error) {
	parts := isoDuration.FindStringSubmatch(text)
	if parts == nil || text[len(text)-1] == 'P' || text[len(text)-1] == 'T' {
		return 0, fmt.Errorf("%q is not an ISO-8601 duration of days, hours, minutes and seconds, such as P14D, "+
			"PT12H or P1DT6H", text)
	}
	var total time.Duration
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if parts[i+1] == "" {
			continue
		}
		n, err := strconv.ParseInt(parts[i+1], 10, 64)
		if err != nil || n > (math.MaxInt64-int64(total))/int64(unit) {
			return 0, fmt.Errorf("the duration %q is too long", text)
		}
		total += time.Duration(n) * unit
	}
	if total == 0 {
		return 0, fmt.Errorf("the duration %q is zero", text)
	}
	return total, nil
}
