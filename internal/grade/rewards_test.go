package grade

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRewardsAreFiniteNumbersWithNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		json, text string // empty: there is no such file
		want       map[string]float64
	}{
		{text: " 0.5\n", want: map[string]float64{"reward": 0.5}},
		{text: "-3", want: map[string]float64{"reward": -3}},
		{json: `{"a": 1, "b": 1e300}`, want: map[string]float64{"a": 1, "b": 1e300}},
		{},
		{text: "\n"},
		{text: "nan"},
		{text: "inf"},
		{text: "1e999"},
		{text: "1 1"},
		{json: `{"a": 0, "a": 1}`},
		{json: `{"a": null}`},
		{json: `{"a": "1"}`},
		{json: `{"a": true}`},
		{json: `{"a": {"b": 1}}`},
		{json: `{"a": 1e999}`},
		{json: `{}`, text: "1"},
		{json: `[1]`, text: "1"},
		{json: `{"a": 1} {"a": 0}`},
	} {
		t.Run(test.json, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range map[string]string{rewardJSON: test.json, rewardText: test.text} {
				if content == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := readRewards(dir)
			if !maps.Equal(got, test.want) || (err == nil) != (test.want != nil) {
				t.Errorf("and %q: %v, %v", test.text, got, err)
			}
			cause := causeBadReward
			switch {
			case test.json+test.text == "":
				cause = causeNoReward
			case test.json == "" && strings.TrimSpace(test.text) == "":
				cause = causeEmptyReward
			}
			if err != nil && rewardCause(err) != cause {
				t.Errorf("and %q: the cause is %s, want %s", test.text, rewardCause(err), cause)
			}
		})
	}
}

// The work runs among the verifier's tests and can leave a file of its own beside the verifier's.
func TestRewardsThatContradictEachOtherDoNotCount(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		json, text string
		agree      bool
	}{
		{`{"reward": 1}`, "1\n", true},
		{`{"reward": 0.5, "style": 1}`, "0.5", true},
		{`{"a": 1, "b": 0}`, "0.5", true},
		{`{"a": 0.1, "b": 0.2, "c": 0.3}`, "0.2", true},
		{`{"reward": 1}`, "0", false},
		{`{"reward": 0}`, "1", false},
		{`{"anything": 1}`, "0", false},
		{`{"a": 1, "b": 0}`, "0", false},
		{`{"reward": 1}`, "", false},
		{`{"reward": 1}`, "nan", false},
		{`{"reward": 1}`, "failed", false},
	} {
		t.Run(test.json, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range map[string]string{rewardJSON: test.json, rewardText: test.text} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := readRewards(dir)
			contradict := errors.As(err, new(*contradiction))
			if contradict == test.agree || (got != nil) != test.agree {
				t.Errorf("and %q: %v, %v", test.text, got, err)
			}
		})
	}
	// A directory in place of the text is no text.
	dir := t.TempDir()
	err := errors.Join(os.WriteFile(filepath.Join(dir, rewardJSON), []byte(`{"reward": 1}`), 0o600),
		os.Mkdir(filepath.Join(dir, rewardText), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readRewards(dir); !errors.As(err, new(*contradiction)) {
		t.Errorf("a directory: %v, %v", got, err)
	}
}

// A reward counts for no more than all and for no less than nothing.
func TestRewardsBeyondTheirBoundsAreCut(t *testing.T) {
	t.Parallel()
	for value, want := range map[float64]float64{-3: 0, 0.25: 0.25, 1e300: 1} {
		if row := rewardRow(map[string]any{"test": "r"}, value, ""); *row.Share != want || row.Pass != (want == 1) {
			t.Errorf("%v: share %v, pass %v", value, *row.Share, row.Pass)
		}
	}
}
