package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/memo"
	"github.com/fit-eval/fit/internal/retry"
)

// Engine makes containers with the command line of podman or docker.
type Engine struct {
	// Kind is IsolationPodman or IsolationDocker.
	Kind string
	// Version is the engine's own.
	Version string

	program string
	mu      sync.Mutex
	runtime string            // in place of podman's default, which does not start containers everywhere
	builds  memo.Table[Image] // by content
	// ownFilter says that the engine takes no filter of system calls.
	ownFilter bool
}

// Image describes an image of an engine.
type Image struct {
	Name string
	// ID is the digest of its configuration, and Digest that of its manifest where it has one.
	ID, Digest string
	Env        []string
	Workdir    string
	User       string
	Entrypoint []string
	Command    []string
}

// engineWait bounds the commands of an engine that only look something up.
const engineWait = time.Minute

// errNoEngine is returned where neither podman nor docker works.
var errNoEngine = errors.New("no container engine works here")

// FindEngine finds the engine of a kind, or the first that works where the kind is empty.
func FindEngine(ctx context.Context, kind string) (*Engine, error) {
	kinds := []string{kind}
	if kind == "" {
		kinds = []string{IsolationPodman, IsolationDocker}
	}
	var failed []error
	for _, kind := range kinds {
		engine, err := findEngine(ctx, kind)
		if err == nil {
			return engine, nil
		}
		failed = append(failed, err)
	}
	fix := installCommand("podman")
	if _, err := exec.LookPath("newuidmap"); err != nil && os.Geteuid() != 0 {
		fix += "; for users other than root it needs newuidmap, on Debian in the package uidmap"
	}
	return nil, fmt.Errorf("%w: %w (%s)", errNoEngine, errors.Join(failed...), fix)
}

func findEngine(ctx context.Context, kind string) (*Engine, error) {
	program, err := exec.LookPath(kind)
	if err != nil {
		return nil, fmt.Errorf("%s is not installed", kind)
	}
	e := &Engine{Kind: kind, program: program}
	format := "{{.Client.Version}}"
	if kind == IsolationDocker {
		format = "{{.Server.Version}}" // it also says whether the server answers
	}
	version, err := e.output(ctx, "version", "--format", format)
	if err != nil {
		return nil, err
	}
	e.Version = strings.TrimSpace(version)
	return e, nil
}

// command returns a command of the engine.
func (e *Engine) command(ctx context.Context, args ...string) *exec.Cmd {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.runtime != "" {
		args = append([]string{"--runtime", e.runtime}, args...)
	}
	cmd := exec.CommandContext(ctx, e.program, args...)
	cmd.Dir = "/"
	return cmd
}

// output returns what a short command prints.
func (e *Engine) output(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, engineWait)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := e.command(ctx, args...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, time.Second
	if err := cmd.Run(); err != nil {
		return "", e.failed(args[0], stderr.Bytes(), err)
	}
	return stdout.String(), nil
}

// engineError is a command of an engine that failed.
type engineError struct {
	Engine, Verb, Said string
	Err                error
}

// failed makes the error of a command from what it printed.
func (e *Engine) failed(verb string, printed []byte, err error) error {
	return &engineError{
		Engine: e.Kind,
		Verb:   verb,
		Said:   display.Line(lastLine(string(printed))),
		Err:    err,
	}
}

func (e *engineError) Error() string {
	if e.Said == "" {
		return fmt.Sprintf("%s %s: %v", e.Engine, e.Verb, e.Err)
	}
	return fmt.Sprintf("%s %s: %s", e.Engine, e.Verb, e.Said)
}

func (e *engineError) Unwrap() error { return e.Err }

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// MissingImageError says that an image is not on this machine, and how to get it.
type MissingImageError struct{ Engine, Image string }

func (m *MissingImageError) Error() string {
	return fmt.Sprintf("the image %s is not on this machine: run %s pull %s, or use --pull", m.Image, m.Engine,
		m.Image)
}

// Inspect finds an image. If it is missing, the error is a *MissingImageError.
func (e *Engine) Inspect(ctx context.Context, name string) (Image, error) {
	var text string
	if err := whileImagesChange(ctx, func() (err error) {
		text, err = e.output(ctx, "image", "inspect", name)
		return err
	}); err != nil {
		if failed, ok := errors.AsType[*engineError](err); ok && missing(failed.Said) {
			return Image{}, &MissingImageError{Engine: e.Kind, Image: name}
		}
		return Image{}, err
	}
	var found []struct {
		ID          string `json:"Id"`
		Digest      string
		RepoDigests []string
		Config      struct {
			Env        []string
			WorkingDir string
			User       string
			Entrypoint []string
			Cmd        []string
		}
	}
	if err := json.Unmarshal([]byte(text), &found); err != nil || len(found) == 0 {
		return Image{}, fmt.Errorf("%s image inspect %s: %w", e.Kind, name,
			errors.Join(errors.New("not understood"), err))
	}
	image := Image{
		Name:       name,
		ID:         "sha256:" + strings.TrimPrefix(found[0].ID, "sha256:"),
		Digest:     found[0].Digest,
		Env:        found[0].Config.Env,
		Workdir:    found[0].Config.WorkingDir,
		User:       found[0].Config.User,
		Entrypoint: found[0].Config.Entrypoint,
		Command:    found[0].Config.Cmd,
	}
	if _, digest, ok := strings.Cut(strings.Join(found[0].RepoDigests, ""), "@"); ok && image.Digest == "" {
		image.Digest, _, _ = strings.Cut(digest, "@")
	}
	return image, nil
}

// imagesChanged is podman's message when another process writes or removes an image at that moment.
// To find the parent of an image, or the layers of an earlier build, podman reads all images.
var imagesChanged = lazyregexp.New(`locating item named|layer not known`)

// whileImagesChange repeats what podman could not do because images were changing.
func whileImagesChange(ctx context.Context, do func() error) error {
	policy := retry.Policy{Retries: 15, First: 50 * time.Millisecond, Longest: 5 * time.Second}
	return policy.Do(ctx, func(int) error {
		err := do()
		if failed, ok := errors.AsType[*engineError](err); ok && imagesChanged.MatchString(failed.Said) {
			return retry.Later(err, retry.Unasked)
		}
		return err
	})
}

// missing reports whether an engine says that something is not there.
func missing(said string) bool {
	said = strings.ToLower(said)
	return slices.ContainsFunc([]string{"no such image", "not known", "no such object", "unable to find", "not found"},
		func(sign string) bool { return strings.Contains(said, sign) })
}

// Pull gets an image from its registry.
func (e *Engine) Pull(ctx context.Context, name string, progress io.Writer) error {
	last := &lastBytes{}
	out := io.MultiWriter(writerOrDiscard(progress), last)
	cmd := e.command(ctx, "pull", name)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, waitDelay
	if err := cmd.Run(); err != nil {
		return e.failed("pull", last.kept, err)
	}
	return nil
}

// lastBytes keeps the end of what is written.
type lastBytes struct{ kept []byte }

func (l *lastBytes) Write(p []byte) (int, error) {
	const bound = 4 << 10
	l.kept = append(l.kept, p...)
	if over := len(l.kept) - bound; over > 0 {
		l.kept = append(l.kept[:0], l.kept[over:]...)
	}
	return len(p), nil
}

// Build says what image to build.
type Build struct {
	// Content names the image: an image built earlier from the same content, on the same bases, is
	// reused.
	Content string
	// Text is the Dockerfile, and Context the directory that it can copy from.
	Text, Context string
	// Bases, if set, returns the ids of the images that it builds on, and gets those that are
	// missing if it is told to.
	Bases    func(ctx context.Context, get bool) ([]string, error)
	Timeout  time.Duration // 0: ten minutes
	Progress io.Writer
}

const defaultBuildTimeout = 10 * time.Minute

func (b Build) bases(ctx context.Context, get bool) ([]string, error) {
	if b.Bases == nil {
		return nil, nil
	}
	return b.Bases(ctx, get)
}

// BuiltName returns the name of the image of a content on bases; without these, of the one that was
// built last.
func BuiltName(content string, bases ...string) string {
	_, hash, _ := strings.Cut(content, ":")
	if len(bases) > 0 {
		sum := sha256.Sum256([]byte(hash + "\x00" + strings.Join(bases, "\x00")))
		hash = hex.EncodeToString(sum[:])
	}
	return "localhost/fit-build:" + hash[:min(32, len(hash))]
}

// Build builds an image, once for all callers.
func (e *Engine) Build(ctx context.Context, b Build) (Image, error) {
	return e.builds.Get(ctx, b.Content, func() (Image, error) { return e.build(ctx, b) })
}

func (e *Engine) build(ctx context.Context, b Build) (Image, error) {
	bases, err := b.bases(ctx, false)
	if _, gone := errors.AsType[*MissingImageError](err); gone {
		// What was built on them is still good.
		if image, err := e.Inspect(ctx, BuiltName(b.Content)); err == nil {
			return image, nil
		}
		bases, err = b.bases(ctx, true)
	}
	if err != nil {
		return Image{}, err
	}
	name := BuiltName(b.Content, bases...)
	image, err := e.Inspect(ctx, name)
	if _, ok := errors.AsType[*MissingImageError](err); !ok {
		return image, err
	}
	if err := e.sweepOnce(ctx); err != nil {
		return Image{}, err
	}
	args := []string{
		"build", "--tag", name, "--tag", BuiltName(b.Content), "--label", labelBuild + "=" + b.Content, "--file", "-",
	}
	env := os.Environ()
	if e.Kind == IsolationPodman {
		// With its processes below it, a build that is killed leaves none running.
		args = append(args, "--pull=never", "--isolation", "chroot", "--format", "docker")
		args = append(args, buildOwner()...)
	} else if e.command(ctx, "buildx", "version").Run() != nil {
		env = append(env, "DOCKER_BUILDKIT=0")
	}
	err = whileImagesChange(ctx, func() error { return e.runTree(ctx, append(args, b.Context), env, b) })
	if err != nil {
		return Image{}, fmt.Errorf("build the image of %s: %w", path.Base(b.Context), err)
	}
	return e.Inspect(ctx, name)
}

// runTree runs a command whose processes all end with it, and with us.
func (e *Engine) runTree(ctx context.Context, args, env []string, b Build) error {
	limit := cmp.Or(b.Timeout, defaultBuildTimeout)
	last := &lastBytes{}
	out := io.MultiWriter(writerOrDiscard(b.Progress), last)
	cmd := e.command(ctx, args...)
	spec := SpawnSpec{
		Argv:    append([]string{e.program}, cmd.Args[1:]...),
		Dir:     b.Context,
		Env:     env,
		Stdin:   strings.NewReader(b.Text),
		Timeout: limit,
		Grace:   -1,
	}
	held := Local{}
	if e.Kind == IsolationPodman {
		held.Containment = treeContainment // podman needs the machine's own process ids
	}
	result, err := held.Spawn(ctx, spec, out, out)
	switch {
	case err != nil:
		return err
	case result.Cancelled:
		return context.Cause(ctx)
	case result.TimedOut:
		return fmt.Errorf("it took longer than %s", limit)
	case result.ExitCode != 0:
		return e.failed(args[0], last.kept, fmt.Errorf("exit code %d", result.ExitCode))
	}
	return nil
}
