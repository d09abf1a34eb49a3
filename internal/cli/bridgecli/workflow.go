package bridgecli

import (
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/bridge/server"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/github"
	"github.com/fit-eval/fit/internal/retry"
)

// workflow is a GitHub workflow that holds runs.
type workflow struct {
	client    *github.Client
	file, ref string
}

func parseWorkflow(text string) (workflow, error) {
	path, ref, named := strings.Cut(text, "@")
	cut := strings.LastIndex(path, "/")
	if !named || ref == "" || cut < 0 || cut == len(path)-1 {
		return workflow{}, console.Usagef("--dispatch-workflow must be OWNER/NAME/FILE@REF, not %q", text)
	}
	repository, err := github.ParseRepository(path[:cut])
	if err != nil {
		return workflow{}, console.Usagef("--dispatch-workflow: %w", err)
	}
	return workflow{client: &github.Client{Repository: repository}, file: path[cut+1:], ref: ref}, nil
}

const (
	// longestInputs is how many characters the inputs of a workflow have at most.
	longestInputs = 65_000
	// dispatchSettle is how long a run may take to be listed that GitHub has started and not
	// confirmed.
	dispatchSettle = 3 * time.Second
)

// hold starts the workflow. Its run reports its end itself. A run that may have been started before
// is recognised by its name, which is the correlation id.
func (w workflow) hold(ctx context.Context, job server.Job) error {
	inputs, err := inputsOf(job)
	if err != nil {
		return err
	}
	unsure := job.Again
	policy := retry.Policy{Retries: 8, First: dispatchSettle, Longest: time.Minute}
	return policy.Do(ctx, func(int) error {
		if unsure {
			if err := within(ctx, dispatchSettle); err != nil {
				return err
			}
			started, err := w.client.HasRun(ctx, w.file, job.Run, job.QueuedAt)
			if err != nil || started {
				return err
			}
		}
		err := w.client.DispatchWorkflow(ctx, w.file, w.ref, inputs)
		if _, later, untouched := github.Later(err); later && !untouched {
			unsure = true
		}
		return err
	})
}

// inputsOf are the inputs of the workflow. What is too long for them is at the callback address.
func inputsOf(job server.Job) (map[string]string, error) {
	inputs := map[string]string{
		"prompt":         job.Task,
		"callback_url":   job.CallbackURL,
		"inbox_url":      job.InboxURL,
		"correlation_id": job.Run,
		"discussion_id":  job.Thread,
		"resume_context": "",
	}
	if job.Resume != nil {
		resume, err := json.Marshal(job.Resume)
		if err != nil {
			return nil, err
		}
		inputs["resume_context"] = string(resume)
	}
	size := 0
	for _, value := range inputs {
		size += utf8.RuneCountInString(value)
	}
	if size > longestInputs {
		inputs["prompt"], inputs["resume_context"] = "", ""
	}
	return inputs, nil
}
