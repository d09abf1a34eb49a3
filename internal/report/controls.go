package report

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fit-eval/fit/stats"
)

// Controls are the arms that show whether an experiment can be believed.
type Controls struct {
	// Shadow is the baseline once more: it must not differ from it. Known has an effect that is
	// known, which must be found; empty where the family declares none. Effect is its direction,
	// better or worse than the baseline; empty in results of earlier versions.
	Shadow, Known, Effect string
}

// Control is what one of the controls showed.
type Control struct {
	Arm string `json:"arm"`
	// Kind is shadow or known.
	Kind     string         `json:"kind"`
	Passed   bool           `json:"passed"`
	Decision stats.Decision `json:"decision,omitzero"`
	Text     string         `json:"text"`
}

// control takes the controls out of the groups, compares each with the baseline, and lets every
// other group know what they showed. A control that cannot be compared has failed: it shows
// nothing.
func (r *Report) control(planned *Planned) error {
	if planned == nil || planned.Controls.Shadow == "" || len(r.Groups) == 0 {
		return nil
	}
	baseline := r.Groups[0]
	kinds := map[string]string{planned.Controls.Shadow: "shadow", planned.Controls.Known: "known"}
	var groups []Group
	for i := range r.Groups {
		kind := kinds[r.Groups[i].Provenance.Arm]
		if kind == "" || r.Groups[i].Provenance.Arm == "" {
			groups = append(groups, r.Groups[i])
			continue
		}
		shown, err := compareControl(&baseline, &r.Groups[i], kind, planned.Controls.Effect)
		if err != nil {
			return err
		}
		r.Controls = append(r.Controls, shown)
	}
	r.Groups = groups
	for i := range r.Groups {
		r.Groups[i].controls = r.Controls
	}
	return nil
}

// compareControl compares a control with the baseline. It claims nothing for readers, so that what
// withholds claims about the arms does not silence it.
func compareControl(baseline, control *Group, kind, effect string) (Control, error) {
	shown := Control{Arm: control.Name, Kind: kind}
	apart := historical(&Basis{Groups: []*Group{baseline, control}})
	if apart != nil && len(control.Tasks) >= stats.MinClaimTasks { // of fewer, nothing is claimed anyway
		shown.Text = fmt.Sprintf("the control %s shows nothing about the other arms: %s", control.Name, apart[0])
		return shown, nil
	}
	compared, err := Compare(baseline, control, CompareConfig{})
	switch {
	case errors.Is(err, stats.ErrNoData):
		shown.Text = fmt.Sprintf("the control %s has no task with verdicts on both sides", control.Name)
		return shown, nil
	case err != nil:
		return shown, err
	}
	shown.Decision = compared.Decision
	size := fmt.Sprintf("%+.1f points, p = %.3g", 100*compared.Decision.Effect, compared.Decision.PAdj)
	differs := compared.Decision.PAdj < stats.DefaultAlpha
	switch {
	case kind == "shadow" && differs:
		shown.Text = fmt.Sprintf("the shadow of the baseline, %s, differs from it (%s)", control.Name, size)
	case kind == "shadow":
		shown.Text, shown.Passed = fmt.Sprintf("the shadow of the baseline is silent (%s)", size), true
	case differs && effect != "" && (effect == "better") != (compared.Decision.Effect > 0):
		shown.Text = fmt.Sprintf("the effect of %s (%s) is not %s, as the family declares it", control.Name, size,
			effect)
	case differs:
		shown.Text, shown.Passed = fmt.Sprintf("the known effect of %s was found (%s)", control.Name, size), true
	default:
		shown.Text = fmt.Sprintf("the known effect of %s was not found (%s)", control.Name, size)
	}
	return shown, nil
}

// failedControls says which controls of an experiment failed.
func failedControls(basis *Basis) []string {
	return basis.each(func(g *Group) string {
		var failed []string
		for _, c := range g.controls {
			if !c.Passed {
				failed = append(failed, c.Text)
			}
		}
		return strings.Join(failed, "; ")
	})
}
