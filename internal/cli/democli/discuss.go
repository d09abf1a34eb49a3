package democli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/builtin"
	"github.com/fit-eval/fit/internal/cli/bridgecli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/harnesscli"
	"github.com/fit-eval/fit/internal/cli/viewcli"
)

const (
	discussMembers  = "security,documentation"
	discussQuestion = "May we release greet today?"
	discussReason   = "Wait: we may not use its list of names before Ann allows it."
	discussOutcome  = "adjourned,failed" // the states in which a thread has one
)

// runDiscuss shows a thread with agents and a person in it: in the browser, where the user is that
// person, or with a scripted one.
func runDiscuss(ctx context.Context, con *console.Console, browser bool) error {
	dir, err := privateDir()
	if err != nil {
		return err
	}
	project := filepath.Join(dir, "greet")
	if err := unpack("assets/team/project", project); err != nil {
		return err
	}
	for name := range strings.SplitSeq(discussMembers, ",") {
		if err := unpackFile("assets/team/"+name+".md",
			filepath.Join(project, ".claude", "agents", name+".md")); err != nil {
			return err
		}
	}
	model, err := serve("assets/discuss/script.json")
	if err != nil {
		return err
	}
	defer model.Close()
	err = con.Foldedf("A lead and two participants discuss in a thread, and a person decides: %q\n"+
		"All agents run on a scripted model, in %s: no API key, no network.\n", discussQuestion, project)
	if err != nil {
		return err
	}
	inside := *con
	inside.Dir = project
	inside.Environ = append(slices.Clone(con.Environ), "FIT_MODEL_URL="+model.URL, "USER=you")
	d := &discussion{con: &inside}
	address, stop, err := d.open(ctx)
	if err != nil {
		return err
	}
	if browser || viewcli.HasBrowser(con) {
		err = d.shown(ctx, address)
	} else {
		err = d.played(ctx)
	}
	if err := errors.Join(err, stop()); err != nil || ctx.Err() != nil {
		return err
	}
	fmt.Fprintf(con.Stdout, "\nThe traces of the runs:  %s\nWith your own agents:    docs/discussion-bridge.md\n",
		filepath.Join(project, "bridge", "tenants", "default", "runs"))
	return nil
}

// discussion is a bridge of the demo.
type discussion struct{ con *console.Console }

// open starts the bridge, and returns the address of its owner and a function that ends it.
func (d *discussion) open(ctx context.Context) (address string, stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	printed, stdout := io.Pipe()
	serving := *d.con
	serving.Stdout = stdout
	ended := make(chan error, 1)
	args := []string{
		"serve", "--dir", "bridge", "--listen", "127.0.0.1:0", "--",
		"--agent", string(builtin.ID), "--isolation", "none", "--agent-profiles", discussMembers,
	}
	d.announce(args)
	go func() {
		ended <- d.run(ctx, &serving, args)
		_ = stdout.Close()
	}()
	line, err := bufio.NewReader(printed).ReadString('\n')
	go func() { _, _ = io.Copy(io.Discard, printed) }()
	stop = func() error {
		cancel()
		return <-ended
	}
	if err != nil {
		return "", nil, stop()
	}
	return strings.TrimSpace(line), stop, nil
}

// shown leaves the thread to the user, in the browser, until the user ends the demo.
func (d *discussion) shown(ctx context.Context, address string) error {
	thread, err := d.post(ctx, discussQuestion)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.con.Stdout, "\n%s\n\nWrite in the thread: %q, or what the agents do not know, e.g. %q "+
		"Ctrl-C ends the demo.\n", address, "Go ahead.", discussReason)
	viewcli.OpenBrowser(ctx, d.con, address)
	if _, err = d.read(ctx, thread, discussOutcome); err == nil {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the user has seen it
	}
	return err
}

// played holds the discussion twice. What the scripted person writes is all that differs.
func (d *discussion) played(ctx context.Context) error {
	outcomes := map[string]string{}
	for _, said := range []string{"Go ahead.", discussReason} {
		thread, err := d.post(ctx, discussQuestion)
		if err != nil {
			return err
		}
		if _, err := d.read(ctx, thread, "recessed,failed"); err != nil {
			return err
		}
		if _, err := d.post(ctx, "--thread", thread, said); err != nil {
			return err
		}
		all, err := d.read(ctx, thread, discussOutcome)
		if err != nil {
			return err
		}
		_, outcome, adjourned := strings.Cut(all, "\n--- adjourned: ")
		if !adjourned {
			return console.Exitf(console.ExitNegative, "the demo's discussion failed: %s", all)
		}
		outcomes[said], _, _ = strings.Cut(outcome, "\n")
	}
	fmt.Fprintf(d.con.Stdout, "\nThe same question to the same agents, and another person's word:\n")
	for _, said := range []string{"Go ahead.", discussReason} {
		fmt.Fprintf(d.con.Stdout, "  %q → %s\n", said, outcomes[said])
	}
	return nil
}

// post shows and runs fit bridge post, and returns the thread.
func (d *discussion) post(ctx context.Context, args ...string) (string, error) {
	args = append([]string{"post", "--dir", "bridge"}, args...)
	d.announce(args)
	var thread bytes.Buffer
	posting := *d.con
	posting.Stdout = &thread
	err := d.run(ctx, &posting, args)
	return strings.TrimSpace(thread.String()), err
}

// read shows and runs fit bridge read, and returns what it prints.
func (d *discussion) read(ctx context.Context, thread, until string) (string, error) {
	args := []string{"read", "--dir", "bridge", thread, "--until", until}
	d.announce(args)
	var all bytes.Buffer
	reading := *d.con
	reading.Stdout = io.MultiWriter(d.con.Stdout, &all)
	err := d.run(ctx, &reading, args)
	return all.String(), err
}

func (d *discussion) announce(args []string) {
	var words []string
	for _, arg := range args {
		if strings.ContainsAny(arg, " ?:") && !strings.HasPrefix(arg, "127.") {
			arg = `"` + arg + `"`
		}
		words = append(words, arg)
	}
	fmt.Fprintf(d.con.Stdout, "\n$ fit bridge %s\n", strings.Join(words, " "))
}

func (d *discussion) run(ctx context.Context, con *console.Console, args []string) error {
	registry := agent.NewRegistry(builtin.New())
	root := &cobra.Command{Use: "fit", SilenceErrors: true, SilenceUsage: true}
	// the bridge asks the harness which flags a run has
	root.AddCommand(harnesscli.New(con, registry), bridgecli.New(con, registry.Dialects()))
	root.SetArgs(append([]string{"bridge"}, args...))
	return root.ExecuteContext(ctx)
}
