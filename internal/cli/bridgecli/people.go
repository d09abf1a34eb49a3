package bridgecli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/bridge"
	"github.com/fit-eval/fit/internal/bridge/server"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/retry"
)

// visitor is a person at a bridge.
type visitor struct {
	at             string // the flag
	dir            string
	address, token string
}

func (v *visitor) register(flags *pflag.FlagSet) {
	flags.StringVar(&v.at, "at", "", "address that fit bridge serve or invite printed, or a `FILE` that has it "+
		"(default: that of the owner of the bridge in --dir)")
	flags.StringVar(&v.dir, "dir", "", dirUsage)
}

func (v *visitor) enter(con *console.Console) error {
	at := v.at
	if at == "" {
		dir, err := directory(con, v.dir)
		if err != nil {
			return err
		}
		at = filepath.Join(dir, ownerFile)
	}
	var err error
	v.address, v.token, err = readURL(con, at)
	return err
}

// ask sends a request, again while the bridge is down or busy.
func (v *visitor) ask(ctx context.Context, method, path string, body, into any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	policy := retry.Policy{Retries: 6, First: 500 * time.Millisecond, Longest: 30 * time.Second}
	err = policy.Do(ctx, func(int) error { return v.once(ctx, method, path, content, into) })
	var coded *console.Error
	if err != nil && !errors.As(err, &coded) {
		err = console.Exit(console.ExitIncomplete, err)
	}
	return err
}

func (v *visitor) once(ctx context.Context, method, path string, content []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 2*bridge.LongPoll)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, v.address+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+v.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return retry.Later(fmt.Errorf("the bridge cannot be reached: %w", err), retry.Unasked)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, bridge.MaxPage))
	if err != nil {
		return retry.Later(fmt.Errorf("the bridge's answer: %w", err), retry.Unasked)
	}
	if response.StatusCode == http.StatusOK {
		return json.Unmarshal(answer, into)
	}
	var refused struct{ Error struct{ Message string } }
	_ = json.Unmarshal(answer, &refused) // else the status says it
	err = fmt.Errorf("the bridge answered %d: %s", response.StatusCode, refused.Error.Message)
	if response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= 500 {
		return retry.Later(err, retry.Asked(response.Header, time.Now()))
	}
	return console.Exit(console.ExitUsage, err)
}

func newPost(con *console.Console) *cobra.Command {
	var who visitor
	var thread string
	command := &cobra.Command{
		Use:   "post TEXT",
		Short: "Post in a thread, or open one, and print its name",
		Long: `Post in a thread of a bridge, or open one, and print the thread's name. A dash reads the text from standard
input. A post that got no answer is sent again, and is in the thread once.`,
		Example: `  fit bridge post "Which licence shall we take?"
  fit bridge post --thread thread-ABC "Take MIT."`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := who.enter(con); err != nil {
				return err
			}
			text := args[0]
			if text == "-" {
				data, err := io.ReadAll(con.Stdin)
				if err != nil {
					return err
				}
				text = string(data)
			}
			path := "/api/threads"
			if thread != "" {
				path += "/" + url.PathEscape(thread) + "/posts"
			}
			var posted server.Posted
			written := server.Written{Body: text, Key: rand.Text()}
			if err := who.ask(command.Context(), http.MethodPost, path, written, &posted); err != nil {
				return err
			}
			fmt.Fprintln(con.Stdout, posted.Thread)
			return nil
		},
	}
	who.register(command.Flags())
	command.Flags().StringVar(&thread, "thread", "", "thread to post in (default: a new one)")
	return command
}

func newRead(con *console.Console) *cobra.Command {
	var who visitor
	var until string
	command := &cobra.Command{
		Use:   "read THREAD",
		Short: "Print a thread, and wait for its end or a recess",
		Long: `Print the posts of a thread. With --until it goes on as they come, until the thread is in one of the
given states: open, recessed, adjourned or failed, with nobody at work.`,
		Example: `  fit bridge read thread-ABC
  fit bridge read thread-ABC --until recessed,adjourned,failed`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := who.enter(con); err != nil {
				return err
			}
			states := console.List(until)
			for _, state := range states {
				if !server.IsState(state) {
					return console.Usagef("--until must be open, recessed, adjourned or failed, not %q", state)
				}
			}
			return follow(command.Context(), con, &who, args[0], states)
		},
	}
	who.register(command.Flags())
	command.Flags().StringVar(&until, "until", "", "wait for one of these states, separated by commas")
	return command
}

// follow prints a thread, until it is in one of the states.
func follow(ctx context.Context, con *console.Console, who *visitor, thread string, until []string) error {
	var view server.View
	var last int64
	path := "/api/threads/" + url.PathEscape(thread)
	for wait := ""; ; wait = view.Doing {
		address := fmt.Sprintf("%s?after=%d&wait=%s", path, last, url.QueryEscape(wait))
		view = server.View{}
		if err := who.ask(ctx, http.MethodGet, address, nil, &view); err != nil {
			return err
		}
		for _, post := range view.Posts {
			fmt.Fprintln(con.Stdout, line(post))
			last = post.N
		}
		idle := !slices.ContainsFunc(view.Thread.Runs, func(r server.Run) bool { return r.EndedAt == 0 })
		if last == view.Thread.Last && (len(until) == 0 || idle && slices.Contains(until, view.Thread.State)) {
			return nil
		}
	}
}

// line is a post on the terminal. Further lines are indented, so that nobody forges a post.
func line(p server.Post) string {
	from := cmp.Or(p.Author, "bridge")
	if p.Role == "end" {
		from = "--- " + from
	}
	return display.Line(from) + ": " + strings.ReplaceAll(display.Text(p.Body), "\n", "\n  ")
}
