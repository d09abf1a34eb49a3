package tracecli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/github"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

func (a *app) githubVerbs() []*cobra.Command {
	return []*cobra.Command{a.runs(), a.find(), a.download()}
}

// tracePrefix is how the names of traces and of the artifacts that hold them begin.
const tracePrefix = "trace--"

// client finds the repository and the token the way people expect.
func (a *app) client(ctx context.Context, repo string) (*github.Client, error) {
	repository, err := a.repository(ctx, repo)
	if err != nil {
		return nil, err
	}
	token := a.token(ctx)
	if token == "" {
		return nil, console.Exitf(console.ExitIncomplete,
			"no token for GitHub: set GH_TOKEN or GITHUB_TOKEN, or log in with gh auth login")
	}
	return &github.Client{
		Base:       a.con.Getenv("GITHUB_API_URL"),
		Token:      token,
		Repository: repository,
		Note:       func(text string) { fmt.Fprintln(a.con.Stderr, text) },
	}, nil
}

func (a *app) repository(ctx context.Context, flag string) (github.Repository, error) {
	for _, text := range []string{flag, a.con.Getenv("GITHUB_REPOSITORY")} {
		if strings.TrimSpace(text) == "" {
			continue
		}
		repository, err := github.ParseRepository(text)
		if err != nil {
			return repository, console.Usagef("%v", err)
		}
		return repository, nil
	}
	remote := a.output(ctx, "git", "remote", "get-url", "origin")
	if repository, err := github.ParseRepository(remote); err == nil {
		return repository, nil
	}
	return github.Repository{}, console.Usagef("which repository? use --repo owner/name, or set GITHUB_REPOSITORY")
}

// token is looked for in the environment, in .env, and in GitHub's own tool.
func (a *app) token(ctx context.Context) string {
	names := []string{"GH_TOKEN", "GITHUB_TOKEN"}
	for _, name := range names {
		if value := strings.TrimSpace(a.con.Getenv(name)); value != "" {
			return value
		}
	}
	if content, err := os.ReadFile(a.con.Path(".env")); err == nil {
		for _, name := range names {
			if value := dotenv(string(content), name); value != "" {
				return value
			}
		}
	}
	return a.output(ctx, "gh", "auth", "token")
}

// dotenv is the value of a variable in a file of NAME=value lines.
func dotenv(content, name string) string {
	for line := range strings.SplitSeq(content, "\n") {
		key, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if ok && strings.TrimSpace(key) == name {
			return strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return ""
}

// output is what a helper program prints; empty if it fails or is not there.
func (a *app) output(ctx context.Context, name string, args ...string) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	program := a.program(name)
	if program == "" {
		return ""
	}
	command := exec.CommandContext(ctx, program, args...)
	command.Dir, command.Env = a.con.Dir, a.con.Environ
	out, err := command.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// program finds a helper in the PATH of the console, which need not be that of the process.
func (a *app) program(name string) string {
	for _, dir := range filepath.SplitList(a.con.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() &&
			info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// runRow is one run in the answer of runs.
type runRow struct {
	Workflow   string  `json:"workflow"`
	RunID      int64   `json:"runId"`
	Status     string  `json:"status"`
	Conclusion *string `json:"conclusion"`
	CreatedAt  string  `json:"createdAt"`
	Branch     *string `json:"branch"`
	URL        string  `json:"url"`
	Match      string  `json:"match,omitempty"`
}

// How sure it is that a participant took part in a run.
const (
	matchConfirmed = "confirmed"
	matchPending   = "unconfirmed-pending-artifacts"
)

func (a *app) runs() *cobra.Command {
	var lookback, participant, repo string
	command := a.verb("runs [PATTERN]", "List the workflow runs on GitHub whose name matches (always JSON)", `  fit trace runs
  fit trace runs --lookback 24h --participant staff-engineer agent`,
		cobra.MaximumNArgs(1), func(ctx context.Context, out *output, args []string) error {
			pattern := "kata|agent"
			if len(args) > 0 {
				pattern = args[0]
			}
			expr, err := regexp.Compile("(?i)" + pattern)
			if err != nil {
				return console.Usagef("pattern %q: %w", pattern, err)
			}
			since, err := parseLookback(lookback)
			if err != nil {
				return err
			}
			client, err := a.client(ctx, repo)
			if err != nil {
				return err
			}
			runs, err := client.Runs(ctx, time.Now().Add(-since))
			if err != nil {
				return err
			}
			out.forceJSON()
			for _, run := range runs {
				if !expr.MatchString(run.Name) {
					continue
				}
				row := runRow{
					run.Name, run.ID, run.Status, run.Conclusion, run.CreatedAt.UTC().Format(time.RFC3339),
					run.Branch, run.URL, "",
				}
				if participant != "" {
					if row.Match, err = a.took(ctx, client, run.ID, participant); err != nil {
						return err
					}
					if row.Match == "" {
						continue
					}
				}
				if err := out.record("", row, nil); err != nil {
					return err
				}
			}
			return out.end()
		})
	command.Flags().StringVar(&lookback, "lookback", "7d",
		"how far to look back: hours, days or weeks, e.g. 12h, 7d, 2w")
	command.Flags().StringVar(&participant, "participant", "", "only runs in which this participant left a trace")
	command.Flags().StringVar(&repo, "repo", "", "the repository as `OWNER/NAME`")
	return command
}

// forceJSON is for answers that are JSON whatever the format, unless they are asked for line by
// line.
func (o *output) forceJSON() {
	if o.format == formatText {
		o.format = formatJSON
	}
}

var lookbackForm = lazyregexp.New(`^(\d{1,4})([hdw])$`)

func parseLookback(text string) (time.Duration, error) {
	match := lookbackForm.FindStringSubmatch(text)
	if match == nil {
		return 0, console.Usagef("--lookback must be hours, days or weeks, e.g. 12h, 7d or 2w, not %q", text)
	}
	n, _ := strconv.Atoi(match[1]) // up to four digits always fit
	unit := map[string]time.Duration{"h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}[match[2]]
	return time.Duration(n) * unit, nil
}

// carries reports whether a name belongs to a participant: trace--<participant>, or
// trace--<case>--<participant>.<role>.ndjson.
func carries(name, participant string) bool {
	rest, ok := strings.CutPrefix(name, tracePrefix)
	if !ok {
		return false
	}
	if rest == participant {
		return true
	}
	_, after, ok := strings.Cut(rest, "--")
	segment, _, _ := strings.Cut(after, ".")
	return ok && segment == participant
}

func traceArtifacts(artifacts []github.Artifact) []github.Artifact {
	var found []github.Artifact
	for _, artifact := range artifacts {
		if strings.HasPrefix(artifact.Name, tracePrefix) && !artifact.Expired {
			found = append(found, artifact)
		}
	}
	return found
}

// took reports how sure it is that a participant took part in a run; empty means that it did not.
func (a *app) took(ctx context.Context, client *github.Client, run int64, participant string) (string, error) {
	all, err := client.Artifacts(ctx, run)
	if err != nil {
		return "", err
	}
	artifacts := traceArtifacts(all)
	if len(artifacts) == 0 {
		return matchPending, nil
	}
	for _, artifact := range artifacts {
		if carries(artifact.Name, participant) {
			return matchConfirmed, nil
		}
	}
	for _, artifact := range artifacts {
		found := false
		err := a.withArchive(ctx, client, artifact, func(archive string) error {
			names, err := github.Members(archive, github.DefaultLimits)
			found = slices.ContainsFunc(names,
				func(name string) bool { return carries(filepath.Base(name), participant) })
			return err
		})
		if err != nil {
			return "", err
		}
		if found {
			return matchConfirmed, nil
		}
	}
	return "", nil
}

// maxArchive bounds a download.
const maxArchive = 4 << 30

// withArchive downloads an artifact for as long as use needs it.
func (a *app) withArchive(ctx context.Context, client *github.Client, artifact github.Artifact,
	use func(archive string) error,
) error {
	file, err := os.CreateTemp("", "fit-artifact-*.zip")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	err = client.Download(ctx, artifact, file, maxArchive)
	err = cmp.Or(err, file.Close())
	if err != nil {
		return err
	}
	return use(file.Name())
}
