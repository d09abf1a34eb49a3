package task

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/fit-eval/fit/internal/skill"
)

// QueryFamily makes a family of the trigger queries of a skill: each is a prompt, and all that is
// asked of a run is whether it opened the skill, or left it alone.
func QueryFamily(dir, name string, queries []skill.Query) (*Family, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("skill %s: %w", dir, err)
	}
	family := &Family{Origin: dir, Dir: real, Name: name}
	l := &datasetLoader{loader: &loader{real: real, family: family}, seen: map[string]int{}}
	for i, q := range queries {
		t := Task{
			ID:       fmt.Sprintf("query-%d", i+1),
			Dir:      filepath.Join(real, "evals"),
			Prompt:   q.Text,
			Settings: settings(TaskFile{}, TaskFile{}, false),
			Sample: &Sample{
				Columns: map[string]any{"query": q.Text, "should_trigger": q.Should},
				Checks: []AnswerCheck{{
					Name:    map[bool]string{true: "the skill is opened", false: "the skill stays unopened"}[q.Should],
					Kind:    CheckUnopened,
					Not:     q.Should,
					Weight:  1,
					Pattern: name,
				}},
			},
		}
		visible := newDigester()
		visible.add("prompt", "prompt", []byte(t.Prompt))
		t.Digest = Digest{Visible: visible.String(), Hidden: l.hiddenDigest(&t)}
		t.Files = l.fileDigests(&t)
		if err := l.sampleDigests(&t); err != nil {
			return nil, err
		}
		family.Tasks = append(family.Tasks, t)
	}
	return family, errors.Join(l.problems...)
}
