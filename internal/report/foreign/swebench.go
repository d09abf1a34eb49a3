package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// sweBenchReader reads what the harness of SWE-bench reports: one report of a run, or a directory
// RUN/MODEL/INSTANCE/report.json, or one of its models. An instance is a task, a model an arm.
var sweBenchReader = reader{format: "swe-bench", finds: findSWEBench, read: readSWEBench}

var (
	sweBenchReport   = lazyregexp.New(`"(resolved_ids|unresolved_ids|completed_ids)"\s*:`)
	sweBenchInstance = lazyregexp.New(`"resolved"\s*:\s*(true|false)`)
)

func findSWEBench(path string, info os.FileInfo) []string {
	if !info.IsDir() {
		if content, err := readBounded(path); err == nil && bytes.HasPrefix(bytes.TrimSpace(content), []byte("{")) &&
			sweBenchReport.Get().Match(content) {
			return []string{path}
		}
		return nil
	}
	for _, pattern := range []string{"*", "*/*", "*/*/*", "logs/run_evaluation/*/*/*"} {
		found, _ := filepath.Glob(filepath.Join(escapeGlob(path), pattern, "report.json"))
		found = slices.DeleteFunc(found, func(file string) bool {
			content, err := readBounded(file)
			return err != nil || !sweBenchInstance.Get().Match(content)
		})
		if len(found) == 0 {
			continue
		}
		// an instance whose patch did not apply, or that took too long, has no report
		instances, _ := filepath.Glob(filepath.Join(escapeGlob(path), pattern))
		for _, dir := range instances {
			info, err := os.Stat(dir)
			if file := filepath.Join(dir, "report.json"); err == nil && info.IsDir() && !slices.Contains(found, file) {
				found = append(found, filepath.Join(dir, sweBenchLog))
			}
		}
		return found
	}
	return nil
}

// sweBenchLog stands beside the report of an instance, or in its place.
const sweBenchLog = "run_instance.log"

// escapeGlob takes a path as it is written.
func escapeGlob(path string) string {
	return globSigns.Get().ReplaceAllString(path, `\$0`)
}

var globSigns = lazyregexp.New(`[*?\[\\]`)

func readSWEBench(s *source, path string) error {
	if filepath.Base(path) == sweBenchLog {
		instance := filepath.Dir(path)
		model := filepath.Base(filepath.Dir(instance))
		r := run{task: filepath.Base(instance), arm: model}
		r.model = model
		failed(&r, "the evaluation has no report: its patch did not apply, or it did not end")
		return s.add(r)
	}
	content, err := readBounded(path)
	if err != nil {
		return err
	}
	if !sweBenchReport.Get().Match(content) {
		return s.instances(content, path)
	}
	var report struct {
		Resolved   []string `json:"resolved_ids"`
		Unresolved []string `json:"unresolved_ids"`
		Errors     []string `json:"error_ids"`
		Empty      []string `json:"empty_patch_ids"`
		Incomplete []string `json:"incomplete_ids"`
		Infra      []string `json:"infra_failure_ids"`
		Ambiguous  []string `json:"ambiguous_failure_ids"`
		Submitted  []string `json:"submitted_ids"`
	}
	if err := json.Unmarshal(content, &report); err != nil {
		return err
	}
	if len(report.Empty) > 0 {
		s.doubt("%d patches are empty and count as failed, whether the agent or a service was the cause",
			len(report.Empty))
	}
	if len(report.Ambiguous) > 0 {
		s.doubt("%d failures may be those of a service", len(report.Ambiguous))
	}
	known := map[string]bool{}
	for _, one := range []struct {
		ids  []string
		fill func(*run)
	}{
		{report.Resolved, func(r *run) { outcome(r, true) }},
		{report.Errors, func(r *run) { failed(r, "the evaluation ended in an error") }},
		{report.Infra, func(r *run) { failed(r, "the evaluation reports a failure of its infrastructure") }},
		{report.Unresolved, func(r *run) { outcome(r, false) }},
		{report.Empty, func(r *run) { outcome(r, false) }}, // the agent has changed nothing
		{report.Incomplete, func(r *run) { failed(r, "the evaluation is not complete") }},
		{report.Submitted, func(r *run) { failed(r, "the report has no outcome of it") }},
	} {
		for _, id := range one.ids {
			if known[id] {
				continue
			}
			known[id] = true
			r := run{task: id, arm: label(path)}
			one.fill(&r)
			if err := s.add(r); err != nil {
				return err
			}
		}
	}
	for _, id := range report.Resolved {
		if slices.Contains(report.Unresolved, id) || slices.Contains(report.Errors, id) {
			return fmt.Errorf("%s is resolved, and it is not", id)
		}
	}
	return nil
}

// instances adds those of a report below MODEL/INSTANCE.
func (s *source) instances(content []byte, path string) error {
	var report map[string]struct {
		Resolved *bool `json:"resolved"`
		Infra    bool  `json:"infra_failure"`
	}
	if err := json.Unmarshal(content, &report); err != nil {
		return err
	}
	if len(report) != 1 {
		return errors.New("the report is not of one instance")
	}
	for id, one := range report {
		model := filepath.Base(filepath.Dir(filepath.Dir(path)))
		r := run{task: id, arm: model}
		if r.model = model; one.Resolved == nil {
			failed(&r, "the report has no outcome")
		} else if one.Infra && !*one.Resolved {
			failed(&r, "the evaluation reports a failure of its infrastructure")
		} else {
			outcome(&r, *one.Resolved)
		}
		if err := s.add(r); err != nil {
			return err
		}
	}
	return nil
}
