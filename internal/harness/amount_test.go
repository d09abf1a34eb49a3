package harness

import "testing"

func TestLimitsAreWrittenAsPeopleWriteThem(t *testing.T) {
	for _, test := range []struct {
		name  string
		limit float64
		want  string
	}{
		{"timeout", 5400, "1h30m"},
		{"idle", 1, "1s"},
		{"turns", 1, "1 turn"},
		{"tokens", 5000, "5000 tokens"},
		{"model_turns", 2, "2 turns of the model in one call"},
		{"cost", 3, "$3.00"},
		{"cost", 0.03, "$0.03"},
		{"cost", 0.0004, "$0.0004"},
		{"cost", 1.255, "$1.255"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := amount(test.name, test.limit); got != test.want {
				t.Errorf("%v: %q, want %q", test.limit, got, test.want)
			}
		})
	}
}
