package tracecli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/internal/report/failure"
	"github.com/fit-eval/fit/ledger"
)

// gradedOverview is the overview of a trace of a run directory: the verdict is that of the graders,
// and not how the agent's session ended.
type gradedOverview struct {
	*query.Overview
	Verdict      string         `json:"verdict"`
	FailedChecks []failure.Row  `json:"failedChecks,omitempty"`
	Cause        *failure.Cause `json:"cause,omitempty"`
	Session      string         `json:"session"` // how it ended
	More         string         `json:"more"`    // the command that shows all that is known
}

// maxAbove is how many directories above a trace its run directory may be.
const maxAbove = 8

// graded adds what the graders said, if the trace lies in a run directory.
func (a *app) graded(t *query.Trace, o *query.Overview) any {
	inside, dir, shown := filepath.Base(t.Path), filepath.Dir(t.Path), filepath.Dir(t.Name())
	for i := 0; i < maxAbove && filepath.Dir(dir) != dir; i++ {
		inside = filepath.Join(filepath.Base(dir), inside)
		dir, shown = filepath.Dir(dir), filepath.Join(shown, "..")
		path := filepath.Join(dir, experiment.LedgerFile)
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		contents, err := ledger.ReadFile(path)
		if err != nil {
			return o
		}
		for i := range contents.Records {
			if r := &contents.Records[i]; filepath.FromSlash(r.AgentTracePath) == inside {
				return &gradedOverview{
					Overview:     o,
					Verdict:      r.Verdict,
					FailedChecks: failure.Checks(r),
					Cause:        failure.CauseOf(r),
					Session:      o.Verdict,
					More:         fmt.Sprintf("fit benchmark show %s %s/%s/%d", shown, r.TaskID, r.Arm, r.RunIndex),
				}
			}
		}
		return o
	}
	return o
}
