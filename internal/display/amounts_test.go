package display_test

import (
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/display"
)

func TestDollars(t *testing.T) {
	for usd, want := range map[float64][2]string{
		0:         {"$0.00", "$0.0000"},
		12.345:    {"$12.35", "$12.3450"},
		0.01:      {"$0.01", "$0.0100"},
		0.0855:    {"$0.09", "$0.0855"},
		0.0045:    {"$0.0045", "$0.0045"},
		0.003149:  {"$0.0031", "$0.0031"},
		0.0000042: {"$0.0000042", "$0.0000042"},
	} {
		if got := [2]string{display.Dollars(usd), display.FineDollars(usd)}; got != want {
			t.Errorf("%v: %s, want %s", usd, got, want)
		}
		if got := [2]string{display.Cost(&usd), display.FineCost(&usd)}; got != want {
			t.Errorf("a cost of %v: %s, want %s", usd, got, want)
		}
	}
	for usd, want := range map[float64]string{3: "$3.00", 0.03: "$0.03", 0.125: "$0.125"} {
		if got := display.Budget(usd); got != want {
			t.Errorf("a budget of %v: %s, want %s", usd, got, want)
		}
	}
	if display.Cost(nil) != "unknown" || display.FineCost(nil) != "unknown" || display.CostOver(nil, 0) != "unknown" ||
		display.CostOver(nil, 0.5) != "over $0.50" || display.CostOver(new(1.0), 0.5) != "$1.00" {
		t.Error("an unknown cost is not shown as such")
	}
}

func TestTimes(t *testing.T) {
	for ms, want := range map[int64]string{
		0: "0s", 7: "7ms", 999: "999ms", 1000: "1s", 40_400: "40s", 60_000: "1m", 125_000: "2m 5s", 3_599_900: "1h",
		3_900_000: "1h 5m",
	} {
		if got := display.Millis(ms); got != want {
			t.Errorf("%d ms: %s, want %s", ms, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		4 * time.Hour: "4h", 30 * time.Minute: "30m", 90 * time.Second: "1m30s", 10 * time.Second: "10s",
		10*time.Minute + 10*time.Second: "10m10s",
	} {
		if got := display.Span(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
