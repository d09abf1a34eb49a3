package console

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/display"
)

// The flag values below share one habit: a blank value means "not given", because workflows forward
// their empty inputs as they are.

// Count is a flag for a whole number of at least Min.
type Count struct {
	Value int
	Given bool
	Min   int
}

// Set implements pflag.Value.
func (c *Count) Set(text string) error {
	if strings.TrimSpace(text) == "" {
		c.Given = false
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < c.Min {
		return fmt.Errorf("must be a whole number of at least %d", c.Min)
	}
	c.Value, c.Given = n, true
	return nil
}

func (c *Count) String() string {
	if c == nil || c.Value == 0 {
		return ""
	}
	return strconv.Itoa(c.Value)
}

// Type implements pflag.Value.
func (c *Count) Type() string { return "int" }

// Dollars is a flag for a positive amount of money.
type Dollars struct {
	Value float64
	Given bool
}

// Set implements pflag.Value.
func (d *Dollars) Set(text string) error {
	if strings.TrimSpace(text) == "" {
		d.Given = false
		return nil
	}
	value, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || !(value > 0) || value > 1e9 {
		return fmt.Errorf("must be an amount in dollars, e.g. 0.50")
	}
	d.Value, d.Given = value, true
	return nil
}

func (d *Dollars) String() string {
	if d == nil || d.Value == 0 {
		return ""
	}
	return strconv.FormatFloat(d.Value, 'g', -1, 64)
}

// Type implements pflag.Value.
func (d *Dollars) Type() string { return "usd" }

// Span is a flag for a positive duration, such as 90s or 15m; a bare number means seconds.
type Span struct {
	Value time.Duration
	Given bool
}

// Set implements pflag.Value.
func (s *Span) Set(text string) error {
	if strings.TrimSpace(text) == "" {
		s.Given = false
		return nil
	}
	value, err := time.ParseDuration(text)
	if seconds, numErr := strconv.ParseFloat(text, 64); numErr == nil {
		value, err = 0, nil
		if seconds < time.Duration(math.MaxInt64).Seconds() { // more, or no number at all, is not a duration
			value = time.Duration(seconds * float64(time.Second))
		}
	}
	if err != nil || value <= 0 {
		return fmt.Errorf("must be a duration, e.g. 90s or 15m")
	}
	s.Value, s.Given = value, true
	return nil
}

func (s *Span) String() string {
	if s == nil || s.Value == 0 {
		return ""
	}
	return display.Span(s.Value)
}

// Type implements pflag.Value.
func (s *Span) Type() string { return "duration" }

// Choice is a flag for one of a few words.
type Choice struct {
	Value   string
	Choices []string
}

// Set implements pflag.Value.
func (c *Choice) Set(text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if !slices.Contains(c.Choices, text) {
		return fmt.Errorf("must be one of %s", strings.Join(c.Choices, ", "))
	}
	c.Value = text
	return nil
}

func (c *Choice) String() string {
	if c == nil {
		return ""
	}
	return c.Value
}

// Type implements pflag.Value.
func (c *Choice) Type() string { return strings.Join(c.Choices, "|") }

// List splits the comma-separated value of a flag, trimming blanks and leaving out empty entries.
func List(text string) []string {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}
