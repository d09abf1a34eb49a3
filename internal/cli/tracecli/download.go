package tracecli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/github"
	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/internal/query/export"
)

// fetchOptions are the flags of find and download.
type fetchOptions struct {
	Dir, Artifact, Repo string
}

func (a *app) find() *cobra.Command {
	var opts fetchOptions
	command := a.runVerb("find RUN-ID PARTICIPANT", "Find the trace of a participant in a run on GitHub (always JSON)",
		`  fit trace find 1234567890 staff-engineer`,
		cobra.ExactArgs(2), &opts.Repo,
		func(ctx context.Context, client *github.Client, run int64, args []string) (any, error) {
			return a.findTrace(ctx, client, run, args[1], opts.Dir)
		})
	command.Flags().StringVar(&opts.Dir, "dir", "", "where to unpack a trace that shares its artifact with others")
	return command
}

// runVerb is a verb about a workflow run on GitHub. Its answer is always JSON.
func (a *app) runVerb(use, short, example string, args cobra.PositionalArgs, repo *string,
	ask func(ctx context.Context, client *github.Client, run int64, args []string) (any, error),
) *cobra.Command {
	command := a.verb(use, short, example, args, func(ctx context.Context, out *output, args []string) error {
		run, err := runID(args[0])
		if err != nil {
			return err
		}
		client, err := a.client(ctx, *repo)
		if err != nil {
			return err
		}
		answer, err := ask(ctx, client, run, args)
		if err != nil {
			return err
		}
		out.forceJSON()
		return out.object("", answer, nil)
	})
	command.Flags().StringVar(repo, "repo", "", "the repository as `OWNER/NAME`")
	return command
}

func runID(text string) (int64, error) {
	run, err := strconv.ParseInt(text, 10, 64)
	if err != nil || run <= 0 {
		return 0, console.Usagef("RUN-ID must be the number of a workflow run, not %q", text)
	}
	return run, nil
}

// unpack unpacks an archive into the directory that was asked for, else into a new one whose name
// nobody can foresee: others may write to the directory for temporary files.
func (a *app) unpack(archive, dir string, run int64) (unpacked string, names []string, err error) {
	if dir == "" {
		dir, err = os.MkdirTemp("", fmt.Sprintf("trace-%d-", run))
	} else {
		dir = a.con.Path(dir)
	}
	if err != nil {
		return "", nil, err
	}
	names, err = github.Unzip(archive, dir, github.DefaultLimits)
	return dir, names, err
}

// foundTrace is the answer of find. A trace that has its artifact for itself is found by name; one
// that shares it is unpacked.
type foundTrace struct {
	RunID       string `json:"runId"`
	Participant string `json:"participant"`
	Host        string `json:"host"` // matrix or dispatch
	Artifact    string `json:"artifact"`
	Path        string `json:"path"`
}

func (a *app) findTrace(ctx context.Context, client *github.Client, run int64, participant, dir string) (*foundTrace,
	error,
) {
	all, err := client.Artifacts(ctx, run)
	if err != nil {
		return nil, err
	}
	artifacts := traceArtifacts(all)
	if len(artifacts) == 0 {
		return nil, console.Exitf(console.ExitNegative, "run %d has no trace artifacts", run)
	}
	found := foundTrace{RunID: strconv.FormatInt(run, 10), Participant: participant}
	for _, artifact := range artifacts {
		if carries(artifact.Name, participant) {
			found.Host, found.Artifact, found.Path = "matrix", artifact.Name, artifact.Name
			return &found, nil
		}
	}
	for _, artifact := range artifacts {
		var names []string
		err := a.withArchive(ctx, client, artifact, func(archive string) (err error) {
			dir, names, err = a.unpack(archive, dir, run)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if carries(filepath.Base(name), participant) {
				found.Host, found.Artifact, found.Path = "dispatch", artifact.Name, filepath.Join(dir,
					filepath.FromSlash(name))
				return &found, nil
			}
		}
	}
	return nil, console.Exitf(console.ExitNegative, "run %d has no trace of %q", run, participant)
}

func (a *app) download() *cobra.Command {
	var opts fetchOptions
	command := a.runVerb("download RUN-ID", "Download and unpack the traces of a run on GitHub (always JSON)", `  fit trace download 1234567890 --dir traces
  fit trace download 1234567890 --artifact trace--case-1`,
		cobra.ExactArgs(1), &opts.Repo,
		func(ctx context.Context, client *github.Client, run int64, _ []string) (any, error) {
			return a.fetch(ctx, client, run, opts.Artifact, opts.Dir)
		})
	command.Flags().StringVar(&opts.Dir, "dir", "", "where to unpack; a new temporary directory if not given")
	command.Flags().StringVar(&opts.Artifact, "artifact", "",
		"the `NAME` of the artifact, if the run has several traces")
	return command
}

// fetched is the answer of download.
type fetched struct {
	Dir        string   `json:"dir"`
	Artifact   string   `json:"artifact"`
	Files      []string `json:"files"`
	Structured string   `json:"structured,omitempty"`
}

func (a *app) fetch(ctx context.Context, client *github.Client, run int64, name, dir string) (*fetched, error) {
	all, err := client.Artifacts(ctx, run)
	if err != nil {
		return nil, err
	}
	artifact, err := chooseArtifact(all, name, run)
	if err != nil {
		return nil, err
	}
	result := &fetched{Artifact: artifact.Name}
	err = a.withArchive(ctx, client, artifact, func(archive string) (err error) {
		result.Dir, result.Files, err = a.unpack(archive, dir, run)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(result.Files)
	if len(result.Files) == 0 {
		result.Files = []string{}
	}
	result.Structured, err = a.structure(ctx, result.Dir, result.Files)
	return result, err
}

// chooseArtifact takes the one that is named, else the only trace.
func chooseArtifact(all []github.Artifact, name string, run int64) (github.Artifact, error) {
	candidates := traceArtifacts(all)
	for _, artifact := range all {
		if name != "" && artifact.Name == name {
			return artifact, nil
		}
	}
	if name == "" && len(candidates) == 1 {
		return candidates[0], nil
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	available := "none"
	if len(names) > 0 {
		available = strings.Join(names, ", ")
	}
	switch {
	case name != "":
		return github.Artifact{}, console.Usagef("run %d has no artifact %q; available: %s", run, name, available)
	case len(candidates) == 0:
		return github.Artifact{}, console.Exitf(console.ExitNegative, "run %d has no trace artifact; available: %s",
			run, available)
	}
	return github.Artifact{}, console.Usagef("run %d has several traces; choose one with --artifact: %s", run,
		available)
}

// structure makes a structured document of the trace of the whole session: the combined file if
// there is one, else the largest.
func (a *app) structure(ctx context.Context, dir string, files []string) (string, error) {
	best, size := "", int64(-1)
	for _, name := range files {
		if !strings.HasSuffix(name, ".ndjson") {
			continue
		}
		info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return "", err
		}
		weight := info.Size()
		if strings.HasSuffix(name, ".raw.ndjson") {
			weight += 1 << 50
		}
		if weight > size {
			best, size = name, weight
		}
	}
	if best == "" {
		return "", nil
	}
	t, err := query.Open(filepath.Join(dir, filepath.FromSlash(best)),
		query.Options{Dialects: a.dialects, Redactor: a.secrets()})
	if err != nil {
		return "", err
	}
	const name = "structured.json"
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	err = export.Document(ctx, t, file)
	err = cmp.Or(err, file.Close())
	if err != nil {
		return "", fmt.Errorf("convert %s: %w", best, err)
	}
	return filepath.Join(dir, name), nil
}
