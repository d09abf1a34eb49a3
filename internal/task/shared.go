package task

import "strings"

// Shared identifies what a task begins with and is graded by, whatever is asked: who solves one of
// the tasks that have the same may solve them all. It is empty where the question makes the task,
// as in rows of datasets.
func (t *Task) Shared() string {
	if t.Sample != nil || t.Verifier != nil || t.Instance != nil {
		return ""
	}
	d := newDigester()
	d.add("repo", "commit", []byte(t.Settings.Ref))
	d.add("judge", "template", []byte(t.JudgeTemplate))
	if t.Spec == nil {
		d.add("visible", "digest", []byte(t.Files.Visible))
		d.add("hidden", "digest", []byte(t.Files.Hidden))
		return d.String()
	}
	d.add("setupCommand", "command", []byte(t.Spec.SetupCommand))
	d.add("verifyCommand", "command", []byte(t.Spec.VerifyCommand))
	d.add("alsoVerify", "commands", []byte(strings.Join(t.Spec.AlsoVerify, "\x00")))
	for _, one := range t.Spec.Requirements {
		d.add(one.ID, "requirement", []byte(one.Text))
	}
	if t.Spec.Reference != nil {
		d.add("reference", "patch", t.Spec.Reference.Patch)
	}
	return d.String()
}
