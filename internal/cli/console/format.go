package console

import (
	"strconv"

	"github.com/spf13/pflag"
)

// The formats that most commands print.
const (
	FormatText     = "text"
	FormatJSON     = "json"
	FormatMarkdown = "markdown"
)

// olderFormats are other names of formats.
var olderFormats = map[string]string{"table": FormatText, "md": FormatMarkdown}

// Format is the flag --format.
type Format struct{ Choice }

// Register adds the flag. The first choice is the default; without any, there are text and json.
func (f *Format) Register(flags *pflag.FlagSet, usage string, choices ...string) {
	if len(choices) == 0 {
		choices = []string{FormatText, FormatJSON}
	}
	f.Choice = Choice{Value: choices[0], Choices: choices}
	flags.Var(f, "format", usage)
}

// RegisterRobot adds the older spelling --robot of --format json, which help does not show.
func (f *Format) RegisterRobot(flags *pflag.FlagSet) {
	flags.AddFlag(&pflag.Flag{
		Name:        "robot",
		Usage:       "older name of --format json",
		Value:       &robot{format: f},
		DefValue:    "false",
		NoOptDefVal: "true",
		Hidden:      true,
	})
}

// Set implements pflag.Value.
func (f *Format) Set(text string) error {
	if now, older := olderFormats[text]; older {
		text = now
	}
	return f.Choice.Set(text)
}

// JSON reports whether a program reads the output.
func (f *Format) JSON() bool { return f.Value == FormatJSON }

// robot is the flag --robot.
type robot struct{ format *Format }

// Set implements pflag.Value.
func (r *robot) Set(text string) error {
	asked, err := strconv.ParseBool(text)
	if err == nil && asked {
		err = r.format.Set(FormatJSON)
	}
	return err
}

func (r *robot) String() string { return "false" }

// Type implements pflag.Value.
func (r *robot) Type() string { return "bool" }
