package console

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// Workflows forward empty inputs as they are, so a blank value is no value; anything else is what
// it says or a mistake.
func TestFlagValues(t *testing.T) {
	count, money, span := &Count{Min: 1}, &Dollars{}, &Span{}
	choice := &Choice{Value: "text", Choices: []string{"text", "json"}}
	allow, format := &Allow{}, &Format{}
	format.Register(pflag.NewFlagSet("", pflag.ContinueOnError), "output format", "text", "json", "markdown")
	for _, row := range []struct {
		flag    pflag.Value
		wrong   []string
		right   map[string]string
		mistake string
	}{
		{
			count,
			[]string{"0", "-3", "abc", "1.5", "99999999999999999999"},
			map[string]string{"7": "7"},
			"whole number of at least 1",
		},
		{
			money,
			[]string{"0", "-1", "NaN", "Inf", "1e12", "much"},
			map[string]string{"0.50": "0.5", "$2": "2"},
			"amount in dollars",
		},
		{
			span,
			[]string{"0", "-1s", "NaN", "Inf", "+Inf", "1e300", "soon", "-5"},
			map[string]string{"90": "1m30s", "15m": "15m", "4h": "4h", "10m10s": "10m10s", "0.5": "500ms"},
			"duration",
		},
		{choice, []string{"JSON", "xml"}, map[string]string{"json": "json"}, "one of text, json"},
		{
			format,
			[]string{"JSON", "xml"},
			map[string]string{"table": "text", "md": "markdown", "json": "json"},
			"one of text, json, markdown",
		},
		{
			allow,
			[]string{"all", "sam", "same;drift"},
			map[string]string{"same, drift,same": "same,drift"},
			"some of same, drift",
		},
	} {
		t.Run(row.mistake, func(t *testing.T) {
			for _, text := range row.wrong {
				if err := row.flag.Set(text); err == nil || !strings.Contains(err.Error(), row.mistake) {
					t.Errorf("%q: got %v and the value %s, want a mistake about %q", text, err, row.flag, row.mistake)
				}
			}
			for text, want := range row.right {
				if err := row.flag.Set(text); err != nil || row.flag.String() != want {
					t.Errorf("%q became %q (%v), want %q", text, row.flag, err, want)
				}
			}
			if err := row.flag.Set(" "); err != nil {
				t.Errorf("a blank is a mistake: %v", err)
			}
		})
	}
	if count.Given || money.Given || span.Given || choice.Value != "json" {
		t.Errorf("a blank value counts as given, or changed a choice: %+v %+v %+v %+v", count, money, span, choice)
	}
	if span.Value > 4*time.Hour { // the longest that is right
		t.Errorf("a refused duration was kept: %s", span.Value)
	}
}
