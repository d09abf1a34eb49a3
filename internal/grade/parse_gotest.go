package grade

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strings"

	"github.com/fit-eval/fit/internal/display"
)

// parseGoTest reads the events of go test -json. Only top-level tests are listed: a subtest that
// fails fails its parent. The report is complete when the package itself has ended.
func parseGoTest(data []byte) testReport {
	var report testReport
	ended := map[string]string{}
	running := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(make([]byte, 64<<10), 4<<20)
	for lines.Scan() {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 || line[0] != '{' {
			continue
		}
		var event struct{ Action, Package, Test, Output string }
		if json.Unmarshal(line, &event) != nil {
			report.problem("the report has a line that is not an event")
			continue
		}
		if strings.Contains(event.Test, "/") {
			if event.Action == "skip" {
				report.add(event.Test, testSkipped, "")
			}
			continue
		}
		key := event.Package + "\x00" + event.Test
		switch event.Action {
		case "run":
			if event.Test != "" && (running[key] || ended[key] != "") {
				report.problem("the test %s was started twice", display.FirstBytes(event.Test, maxRaw))
			}
			running[key] = true
		case "pass", "fail", "skip":
			report.goEnd(event.Test, event.Action, ended[key], running[key])
			ended[key] = event.Action
		}
	}
	if lines.Err() != nil {
		report.problem("the report cannot be read: %v", lines.Err())
	}
	for key := range running {
		if _, name, _ := strings.Cut(key, "\x00"); name != "" && ended[key] == "" {
			report.add(name, testFailed, "it did not end")
		}
	}
	return report
}

// goEnd notes the end of a test, or of the package if the name is empty.
func (r *testReport) goEnd(name, action, before string, ran bool) {
	if name == "" {
		r.Complete = true
		if action == "fail" {
			r.add("package", testFailed, "")
		}
		return
	}
	if before != "" {
		r.problem("the test %s ended twice", display.FirstBytes(name, maxRaw))
	}
	if !ran {
		r.problem("the test %s ended without having been started", display.FirstBytes(name, maxRaw))
	}
	r.add(name, map[string]testStatus{"pass": testPassed, "fail": testFailed, "skip": testSkipped}[action], "")
}
