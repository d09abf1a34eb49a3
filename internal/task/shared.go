package task

import "strings"

// Shared identifies what a task begins with and is graded by, whatever is asked: who solves one of
// the tasks that have the same may solve them all. It is empty where the question makes the task,
// as in rows of datasets.
func (t *Task) Shared() string {
	if t.Sample != nil || t.Verifier != nil {
		return ""
	}
	d := newDigester()
	if n := t.Instance; n != nil { // another problem statement makes no other test
		for _, part := range []string{
			n.Repo, n.BaseCommit, n.Gold, n.TestPatch, n.EvalScript, n.LogParser,
			strings.Join(n.FailToPass, "\x00"), strings.Join(n.PassToPass, "\x00"),
		} {
			d.add("instance", "part", []byte(part))
		}
		return d.String()
	}
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
