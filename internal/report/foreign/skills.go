package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// skillsReader reads a workspace of Agent Skills: ITERATION/EVAL/CONFIGURATION/grading.json, with
// what it took in timing.json beside it. An eval is a task, a configuration an arm.
var skillsReader = reader{format: "skills", finds: findSkills, read: readSkills}

func findSkills(path string, info os.FileInfo) []string {
	if !info.IsDir() {
		return nil
	}
	var files []string
	for _, pattern := range []string{"*/*", "*/*/*", "*/*/*/*"} { // some runs have directories of their own
		in := func(name string) []string {
			found, _ := filepath.Glob(filepath.Join(escapeGlob(path), pattern, name))
			return slices.DeleteFunc(found, func(file string) bool { return amongOutputs(path, file) })
		}
		graded := in(gradingFile)
		files = append(files, graded...)
		if len(graded) == 0 {
			continue
		}
		for _, trace := range append(in(outputsDir), in(timingFile)...) { // of a run, graded or not
			file := filepath.Join(filepath.Dir(trace), gradingFile)
			if !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files
}

// amongOutputs reports whether an agent can have written a file.
func amongOutputs(root, file string) bool {
	name, err := filepath.Rel(root, filepath.Dir(file))
	return err != nil || slices.Contains(strings.Split(name, string(filepath.Separator)), outputsDir)
}

const (
	outputsDir  = "outputs"
	gradingFile = "grading.json"
	timingFile  = "timing.json"
)

// readSkills adds the run of a grading. What share of its statements hold is its score.
func readSkills(s *source, path string) error {
	content, err := readBounded(path)
	ungraded := errors.Is(err, fs.ErrNotExist)
	if err != nil && !ungraded {
		return err
	}
	type statement struct {
		Text   string `json:"text"`
		Passed *bool  `json:"passed"`
	}
	var grading struct {
		Assertions   []statement `json:"assertion_results"`
		Expectations []statement `json:"expectations"`
	}
	if !ungraded {
		if err := json.Unmarshal(content, &grading); err != nil {
			return err
		}
	}
	dir := filepath.Dir(path)
	if isRun(filepath.Base(dir)) { // CONFIGURATION/run-N
		dir = filepath.Dir(dir)
	}
	r := run{arm: filepath.Base(dir), task: filepath.Base(filepath.Dir(dir)), index: -1}
	// every iteration has another version of the skill
	if iteration := filepath.Dir(filepath.Dir(dir)); len(iteration) > len(filepath.Clean(s.root)) {
		prefix := filepath.Base(iteration) + "/"
		s.armPrefixes[prefix], r.arm = true, prefix+r.arm
	}
	passing, known := 0, 0
	list := slices.Concat(grading.Assertions, grading.Expectations)
	for _, one := range list {
		if one.Passed != nil {
			known++
		}
		if isTrue(one.Passed) {
			passing++
		}
	}
	switch {
	case ungraded:
		failed(&r, "nobody graded the run")
	case known == 0 || known < len(list):
		failed(&r, fmt.Sprintf("%d of %d statements were graded", known, len(list)))
	default:
		if err := s.scored(&r, float64(passing)/float64(known), true); err != nil {
			return err
		}
	}
	if err := s.timing(&r, filepath.Join(filepath.Dir(path), timingFile)); err != nil {
		return err
	}
	return s.add(r)
}

func isRun(name string) bool { return len(name) > 4 && name[:4] == "run-" }

// timing fills in what a run took, where somebody measured it. Tokens are not told apart.
func (s *source) timing(r *run, path string) error {
	content, err := readBounded(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var timing struct {
		DurationMs float64 `json:"duration_ms"`
	}
	if err == nil {
		err = json.Unmarshal(content, &timing)
	}
	r.duration = int64(min(max(timing.DurationMs, 0), maxAmount))
	return err
}
