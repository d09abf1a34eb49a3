package harnesscli

import (
	"archive/zip"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/github"
)

// scanOptions are the flags of fit-harness scan-logs.
type scanOptions struct {
	archive    string
	runID      string
	repo       string
	secrets    []string
	secretEnvs []string
}

func newScanLogs(con *console.Console) *cobra.Command {
	var opts scanOptions
	command := &cobra.Command{
		Use:   "scan-logs",
		Short: "Check the logs of a workflow run for secrets",
		Long: `Check the logs of a workflow run for secrets, as they are and in the encodings that often hide them.
Each finding is printed as a FAIL line. A file that cannot be read counts as a failure, because it may hold a secret.

Exit codes: 0 nothing found · 1 a secret was found, or a file could not be read · 2 usage error · 3 the logs could not
be fetched.`,
		Example: `  fit-harness scan-logs --archive logs.zip --secret-env GH_TOKEN --secret-env ANTHROPIC_API_KEY
  fit-harness scan-logs --run-id 1234 --repo owner/name --secret-env GH_TOKEN`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return runScanLogs(command.Context(), con, opts) },
	}
	flags := command.Flags()
	flags.StringVar(&opts.archive, "archive", "", "zip file with the logs")
	flags.StringVar(&opts.runID, "run-id", "", "fetch the logs of this run")
	flags.StringVar(&opts.repo, "repo", "", "repository of the run: owner/name (also GITHUB_REPOSITORY)")
	flags.StringArrayVar(&opts.secrets, "secret", nil,
		"label=literal; other users can read command lines, so prefer --secret-env")
	flags.StringArrayVar(&opts.secretEnvs, "secret-env", nil, "environment variable that holds a secret")
	return command
}

func runScanLogs(ctx context.Context, con *console.Console, opts scanOptions) error {
	scanner, err := opts.scanner(con)
	if err != nil {
		return err
	}
	archive, done, err := opts.logs(ctx, con)
	if err != nil {
		return err
	}
	defer done()
	reader, err := zip.OpenReader(archive)
	if err != nil {
		return console.Exit(console.ExitNegative, fmt.Errorf("open the archive: %w", err))
	}
	defer reader.Close()
	findings := 0
	for _, member := range reader.File {
		if strings.HasSuffix(member.Name, "/") {
			continue
		}
		labels, err := scanner.file(member)
		for _, label := range labels {
			fmt.Fprintf(con.Stderr, "FAIL: %s is in %q\n", label, member.Name)
			findings++
		}
		if err != nil {
			fmt.Fprintf(con.Stderr, "FAIL: %q cannot be read: %v\n", member.Name, err)
			findings++
		}
	}
	if findings > 0 {
		return console.Exitf(console.ExitNegative, "%d findings in %d files", findings, len(reader.File))
	}
	fmt.Fprintf(con.Stderr, "%d files contain none of the %d secrets\n", len(reader.File), scanner.count())
	return nil
}

// scanner collects the secrets to look for. Blank ones are left out: a workflow may forward a
// secret that is not set.
func (o scanOptions) scanner(con *console.Console) (*logScanner, error) {
	if len(o.secrets)+len(o.secretEnvs) == 0 {
		return nil, console.Usagef("no secrets to look for: use --secret-env NAME")
	}
	named := map[string]string{}
	for _, entry := range o.secrets {
		label, literal, ok := strings.Cut(entry, "=")
		if !ok || label == "" {
			return nil, console.Usagef("--secret needs the form label=literal")
		}
		named[label] = literal
	}
	for _, name := range o.secretEnvs {
		named[name] = con.Getenv(name)
	}
	s := newLogScanner()
	for label, literal := range named {
		if literal == "" {
			fmt.Fprintf(con.Stderr, "%s is empty; skipped\n", label)
			continue
		}
		s.add(label, literal)
	}
	return s, nil
}

// maxLogs is how much is fetched at most.
const maxLogs = 4 << 30

// logs returns the path of the archive, and what to do when it is no longer needed.
func (o scanOptions) logs(ctx context.Context, con *console.Console) (path string, done func(), err error) {
	if (o.archive == "") == (o.runID == "") {
		return "", nil, console.Usagef("no logs: use --archive FILE, or --run-id and --repo")
	}
	if o.archive != "" {
		return con.Path(o.archive), func() {}, nil
	}
	client, run, err := o.client(con)
	if err != nil {
		return "", nil, err
	}
	file, err := os.CreateTemp(con.Getenv("RUNNER_TEMP"), "fit-logs-*.zip")
	if err != nil {
		return "", nil, err
	}
	done = func() { _ = os.Remove(file.Name()) } // nothing more can be done about it
	err = client.Logs(ctx, run, file, maxLogs)
	if err = errors.Join(err, file.Close()); err != nil {
		done()
		return "", nil, console.Exit(console.ExitIncomplete, fmt.Errorf("fetch the logs: %w", err))
	}
	return file.Name(), done, nil
}

func (o scanOptions) client(con *console.Console) (*github.Client, int64, error) {
	run, err := strconv.ParseInt(o.runID, 10, 64)
	if err != nil || run < 1 {
		return nil, 0, console.Usagef("--run-id %q is not the number of a run", o.runID)
	}
	repository, err := github.ParseRepository(cmp.Or(o.repo, con.Getenv("GITHUB_REPOSITORY")))
	if err != nil {
		return nil, 0, console.Usagef("--repo: %w", err)
	}
	return &github.Client{
		Base:       con.Getenv("GITHUB_API_URL"),
		Token:      cmp.Or(con.Getenv("GH_TOKEN"), con.Getenv("GITHUB_TOKEN")),
		Repository: repository,
		Note:       func(text string) { fmt.Fprintln(con.Stderr, text) },
	}, run, nil
}
