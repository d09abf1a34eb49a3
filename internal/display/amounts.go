package display

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Dollars writes an amount with its cents, and one of less than a cent with two significant digits.
func Dollars(usd float64) string { return dollars(usd, 2) }

// FineDollars writes what a few calls cost, with four digits after the point or, of less than that,
// two significant ones.
func FineDollars(usd float64) string { return dollars(usd, 4) }

func dollars(usd float64, digits int) string {
	if usd <= 0 || usd >= math.Pow10(-digits) {
		return "$" + strconv.FormatFloat(usd, 'f', digits, 64)
	}
	rounded, _ := strconv.ParseFloat(fmt.Sprintf("%.1e", usd), 64)
	return "$" + strconv.FormatFloat(rounded, 'f', -1, 64)
}

// Budget writes an amount that somebody chose: with its cents, or with as many digits as it has.
func Budget(usd float64) string {
	exact := strconv.FormatFloat(usd, 'f', -1, 64)
	if rounded := strconv.FormatFloat(usd, 'f', 2, 64); len(rounded) > len(exact) {
		exact = rounded
	}
	return "$" + exact
}

// Cost writes an amount that may be unknown.
func Cost(usd *float64) string { return known(usd, Dollars) }

// FineCost is Cost with the digits of FineDollars.
func FineCost(usd *float64) string { return known(usd, FineDollars) }

func known(usd *float64, write func(float64) string) string {
	if usd == nil {
		return "unknown"
	}
	return write(*usd)
}

// CostOver writes an amount of which, where the whole is unknown, a part is known.
func CostOver(usd *float64, part float64) string {
	if usd == nil && part > 0 {
		return "over " + Dollars(part)
	}
	return Cost(usd)
}

// Millis writes a time that was measured, rounded to seconds: 40s, 2m 5s, 3m, 1h 5m, 0s; and less
// than a second as 120ms.
func Millis(ms int64) string {
	if 0 < ms && ms < 1000 {
		return fmt.Sprintf("%dms", ms)
	}
	seconds := int64(math.Round(float64(ms) / 1000))
	minutes := seconds / 60
	switch {
	case minutes == 0:
		return fmt.Sprintf("%ds", seconds)
	case minutes >= 60:
		return pair(minutes/60, "h", minutes%60, "m")
	}
	return pair(minutes, "m", seconds%60, "s")
}

// pair leaves out the smaller part where it is zero.
func pair(n int64, unit string, rest int64, smaller string) string {
	if rest == 0 {
		return fmt.Sprintf("%d%s", n, unit)
	}
	return fmt.Sprintf("%d%s %d%s", n, unit, rest, smaller)
}

// Duration is Millis of a duration.
func Duration(d time.Duration) string { return Millis(d.Milliseconds()) }

// Span writes a time that somebody chose, exactly and as it can be given again: 4h, 30m, 1m30s.
func Span(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
