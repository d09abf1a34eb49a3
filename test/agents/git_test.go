package agents

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/acp"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/internal/testenv"
)

// TestGitRunsNothingOfAProjectWithoutIsolation: agents call git by themselves, and git runs what
// the settings of a repository name. Without isolation that is refused in every context, unless
// somebody accepts the project's programs.
func TestGitRunsNothingOfAProjectWithoutIsolation(t *testing.T) {
	t.Parallel()
	testenv.NeedTool(t, "git")
	for _, a := range catalog.Default().All() {
		if _, pinned := given[a.Info().ID]; !pinned || !a.Info().Places.Git {
			continue
		}
		t.Run(string(a.Info().ID), func(t *testing.T) {
			t.Parallel()
			if _, shared := a.(*acp.Agent); shared && a.Info().ID != "qwen-code" {
				testenv.Soak(t)
			}
			env := environ(t)
			agenttest.Find(t, a, agent.Host{Environ: env, CacheDir: probeCache(t)})
			for _, context := range []string{"", agent.ContextNone} {
				dir, mark := filteredRepository(t)
				code, said := unprotected(t, dir, a, env, context)
				if code != console.ExitUsage || !strings.Contains(said, ".git/config") ||
					!strings.Contains(said, "--isolation bwrap") {
					t.Errorf("context %q: exit code %d\n%s", context, code, said)
				}
				if _, err := os.Stat(mark); err == nil {
					t.Errorf("context %q: the program of the repository ran", context)
				}
			}
			dir, mark := filteredRepository(t)
			if code, said := unprotected(t, dir, a, env, agent.ContextProject); code != 0 {
				t.Errorf("accepted: exit code %d\n%s", code, said)
			}
			if _, err := os.Stat(mark); err != nil && (a.Info().ID == "claude-code" || a.Info().ID == "codex") {
				t.Errorf("the agent did not make git run the program, so this test shows nothing: %v", err)
			}
		})
	}
}

// unprotected runs an agent without isolation, with a context that is typed; empty: none is.
func unprotected(t *testing.T, dir string, a agent.Agent, env []string, context string) (code int, said string) {
	t.Helper()
	url := scriptedtest.ServeAll(t, map[string]string{"": scriptOf(t, turn{"text": "Done."})}, scripted.Options{})
	args := []string{
		"fit-harness", "run", "--agent", string(a.Info().ID), "--agent-model", modelName(a), "--model-url", url,
		"--isolation", "none", "--output", filepath.Join(t.TempDir(), "trace.ndjson"), "--task-text", "Say done.",
	}
	if context != "" {
		args = append(args, "--context", context)
	}
	var errs bytes.Buffer
	code = cli.Run(t.Context(), args, &console.Console{
		Stdin: strings.NewReader(""), Stdout: &errs, Stderr: &errs, Dir: dir, Version: "test",
		Environ: append(env, "OPENAI_API_KEY="+realKey, "ANTHROPIC_API_KEY="+realKey, "GEMINI_API_KEY="+realKey),
	})
	return code, errs.String()
}

// filteredRepository is a repository whose filter leaves a mark when git compares files.
func filteredRepository(t *testing.T) (dir, mark string) {
	t.Helper()
	dir, mark = t.TempDir(), filepath.Join(t.TempDir(), "ran")
	writeTo(t, filepath.Join(dir, "README.md"), "Nothing here yet.\n")
	writeTo(t, filepath.Join(dir, ".gitattributes"), "*.md filter=evil\n")
	for _, args := range [][]string{
		{"init", "-q"},
		{"add", "."},
		{"commit", "-q", "-m", "first"},
		{"config", "filter.evil.clean", fmt.Sprintf("touch %s; cat", mark)},
	} {
		if _, err := git.Output(t.Context(), dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	writeTo(t, filepath.Join(dir, "README.md"), "Nothing here yet!\n")
	return dir, mark
}
