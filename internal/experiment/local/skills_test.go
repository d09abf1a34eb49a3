package local

import (
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent/builtin"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/ledger"
)

// A skills directory is an arm like any other: it changes what the model is sent, and so what comes
// of it.
func TestASkillChangesWhatTheModelIsSent(t *testing.T) {
	url := serveScript(t, strings.ReplaceAll(`{"scenarios":[{"name":"skilled","when":{"system":"answering (PLACE/answering/SKILL.md): Use it for questions"},"turns":[
		{"calls":[{"read":"PLACE/answering/SKILL.md"}]},{"cases":[{"when":{"last_result":"It is 42"},"calls":[{"write":"answer.txt","content":"42\n"}]}],"text":"lost"},{"text":"Done."}]}],
		"turns":[{"text":"I do not know."}]}`, "PLACE", skillsDir(builtin.New().Info())))
	before, after := t.TempDir(), t.TempDir()
	writeFiles(t, before, map[string]string{
		".claude/skills/other/SKILL.md": "---\nname: other\ndescription: Use it for nothing.\n---\nNothing.\n",
	})
	writeFiles(t, after, map[string]string{
		".claude/settings.json":             "{}",
		".claude/skills/answering/SKILL.md": "---\nname: answering\ndescription: Use it for questions.\n---\nIt is 42.\n",
	})
	arm := experiment.Arm{Agent: "builtin", Model: "claude-sonnet-4-5", ModelURL: url}
	arms := []experiment.Arm{arm, arm}
	arms[0].Name, arms[0].Skills = "before", before
	arms[1].Name, arms[1].Skills = "after", after
	_, _, records := execute(t, prepared(t, oneTask(t, nil), experiment.Setup{Arms: arms}), 2)
	verdicts, hashes := map[string]string{}, map[string]bool{}
	for _, r := range records {
		verdicts[r.Arm] = r.Verdict
		hashes[r.SkillSetHash], hashes[r.ArmHash] = true, true
	}
	if verdicts["before"] != ledger.Fail || verdicts["after"] != ledger.Pass || len(hashes) != 4 {
		t.Errorf("%v %v: %+v", verdicts, hashes, records)
	}
}
