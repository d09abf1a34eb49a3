package cli

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestTheFirstDayIsShort counts what people type for the jobs of a first day. The commands are run
// by the script, the workflow is checked in test/action, and the Go program is built beside the
// package fit.
func TestTheFirstDayIsShort(t *testing.T) {
	read := func(name string) string {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	jobs := regexp.MustCompile(`(?m)^# (.*) At most (\d) commands?\.$`)
	script := read("testdata/script/first_day.txt")
	found := jobs.FindAllStringSubmatchIndex(script, -1)
	if len(found) != 3 {
		t.Errorf("the script has %d jobs", len(found))
	}
	for i, job := range found {
		end := len(script)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		most, err := strconv.Atoi(script[job[4]:job[5]])
		if n := strings.Count(script[job[0]:end], "\nexec fit"); err != nil || n > most || n == 0 {
			t.Errorf("%s %d commands, %v", script[job[2]:job[3]], n, err)
		}
	}
	path, _, _ := strings.Cut(read("../../docs/skills.md"), "```text")
	if n := strings.Count(path, "\nfit"); n != 4 || !strings.Contains(path, "\nfit skill test ") {
		t.Errorf("from nothing to the first decision about a skill it takes %d commands, must be 4", n)
	}
	for page, most := range map[string]int{"ci.md": 12, "measure-from-go.md": 10} {
		t.Run(page, func(t *testing.T) {
			block := regexp.MustCompile("(?s)```(?:yaml|go)\n(.*?)```").FindStringSubmatch(read("../../docs/" + page))
			if block == nil {
				t.Errorf("%s has no box", page)
			} else if n := strings.Count(block[1], "\n"); n > most {
				t.Errorf("the box of %s has %d lines, at most %d", page, n, most)
			}
		})
	}
}
