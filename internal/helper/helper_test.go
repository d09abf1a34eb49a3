package helper

import (
	"slices"
	"testing"
)

func TestAHelperIsKnownByItsNameAlone(t *testing.T) {
	for _, test := range []struct {
		title     string
		args      []string
		name      string
		arguments []string
	}{
		{"a name", []string{"fit-watchdog"}, "fit-watchdog", nil},
		{"a link", []string{"/tmp/a b/fit-untrusted", "sh", "-c", ""}, "fit-untrusted", []string{"sh", "-c", ""}},
		{"another program", []string{"/usr/bin/prog", "fit-untrusted", "sh"}, "prog", []string{"fit-untrusted", "sh"}},
		{"a descriptor", []string{"/proc/self/fd/7", "fit-sandbox-first", "/"}, "fit-sandbox-first", []string{"/"}},
		{"a program at a descriptor", []string{"/proc/self/fd/7"}, "7", nil},
		{"a directory of descriptors", []string{"/proc/self/fd/", "fit-untrusted"}, "", []string{"fit-untrusted"}},
		{"no name", []string{""}, "", nil},
		{"nothing", nil, "", nil},
	} {
		t.Run(test.title, func(t *testing.T) {
			if name, arguments := started(test.args); name != test.name || !slices.Equal(arguments, test.arguments) {
				t.Errorf("%q, %q", name, arguments)
			}
		})
	}
	if Become("fit-untrusted", func([]string) int { panic("this is a test") }) {
		t.Error("this process was started under another name")
	}
}
