package first

import (
	"reflect"
	"testing"
)

func TestACommandLineKeepsItsSettings(t *testing.T) {
	for _, want := range []Settings{
		{},
		{Dir: "/with a blank/--"},
		{
			UID:     0x7000_0000,
			Dir:     "/",
			StartFD: 9,
			SelfFD:  8,
			Limits:  []Limit{{Resource: 7, Value: 1<<64 - 1}, {Resource: 2}},
		},
	} {
		args := want.Argv("/bin/sh", []string{"sh", "--", "-c", ""})
		got, program, err := decode(args[1:])
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
		if !reflect.DeepEqual(program, []string{"/bin/sh", "sh", "--", "-c", ""}) {
			t.Errorf("program %q", program)
		}
		for cut := range len(args) - 5 { // a program has at least a name
			if got, _, err := decode(args[1 : 1+cut]); err == nil {
				t.Errorf("%q: %+v", args[1:1+cut], got)
			}
		}
	}
}
