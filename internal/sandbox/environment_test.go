package sandbox_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fit-eval/fit/internal/sandbox"
)

func TestEnvironmentHoldsOnlyWhatIsListed(t *testing.T) {
	parent := []string{
		"PATH=/bin", "HOME=/home/u", "TZ=Asia/Tokyo", "LANG=C.UTF-8", "https_proxy=http://p:1",
		"ANTHROPIC_API_KEY=k1", "OPENAI_API_KEY=k2", "AWS_SECRET_ACCESS_KEY=k3", "GITHUB_TOKEN=k4",
		"SSH_AUTH_SOCK=/s", "CLAUDECODE=1", "GIT_AUTHOR_NAME=Somebody", "GIT_DIR=/elsewhere", "LD_PRELOAD=x.so",
	}
	env := sandbox.NewEnvironment(sandbox.EnvironmentConfig{Parent: parent, TmpDir: "/cell/tmp", RunID: "r1"})
	want := []string{
		"CI=1", "EVAL_RUN_ID=r1", "GIT_AUTHOR_EMAIL=fit@localhost", "GIT_AUTHOR_NAME=fit",
		"GIT_COMMITTER_EMAIL=fit@localhost", "GIT_COMMITTER_NAME=fit",
		"GIT_CONFIG_GLOBAL=/dev/null/none", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"HOME=/home/u", "LANG=C.UTF-8", "NO_COLOR=1", "PATH=/bin", "TERM=dumb", "TMPDIR=/cell/tmp",
		"TZ=UTC", "https_proxy=http://p:1",
	}
	if diff := cmp.Diff(want, env.List()); diff != "" {
		t.Errorf("environment differs (-want +got):\n%s", diff)
	}
}

func TestEnvironmentTakesAnAgentsOwnVariablesByName(t *testing.T) {
	parent := []string{"CODEX_API_KEY=mine", "ANTHROPIC_API_KEY=other", "NOT SET", "CODEX_API_KEY=last"}
	env := sandbox.Environment{}
	env.Allow(parent, "CODEX_API_KEY", "CODEX_HOME")
	env["CODEX_HOME"] = "/cell/codex"
	if diff := cmp.Diff([]string{"CODEX_API_KEY=last", "CODEX_HOME=/cell/codex"}, env.List()); diff != "" {
		t.Errorf("environment differs (-want +got):\n%s", diff)
	}
}

func TestChangingOneEnvironmentLeavesTheNextAlone(t *testing.T) {
	sandbox.NewEnvironment(sandbox.EnvironmentConfig{})["CI"] = "changed"
	if got := sandbox.NewEnvironment(sandbox.EnvironmentConfig{})["CI"]; got != "1" {
		t.Errorf("CI is %q", got)
	}
}

func TestNoOtherNameEverGetsThrough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parent := rapid.SliceOf(rapid.StringMatching(`[A-Za-z_]{1,12}=[ -~]{0,10}`)).Draw(t, "parent")
		list := sandbox.NewEnvironment(sandbox.EnvironmentConfig{Parent: parent}).List()
		if !slices.IsSorted(list) {
			t.Fatalf("not sorted: %q", list)
		}
		seen := map[string]bool{}
		for _, variable := range list {
			name, _, _ := strings.Cut(variable, "=")
			if seen[name] || !slices.Contains(sandbox.CommonNames(), name) {
				t.Fatalf("%s is doubled or not on the list", name)
			}
			seen[name] = true
		}
	})
}
