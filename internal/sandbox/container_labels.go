package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/retry"
	"github.com/fit-eval/fit/internal/sandbox/proc"
)

// The labels of what we make. A container names the process that it belongs to, so that the
// leftovers of a killed process can be found.
const (
	labelOwner = "dev.fit.owner"
	labelBuild = "dev.fit.build"
)

// ownLabels mark a container as ours.
func ownLabels() []string { return []string{"--label", labelOwner + "=" + ownerOf(os.Getpid())} }

// machineMark identifies the machine since its boot and our PID namespace.
var machineMark = sync.OnceValue(func() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + "/" + strings.Trim(strings.TrimPrefix(space, "pid:"), "[]")
})

// ownerOf names a process uniquely: its number may be reused later.
func ownerOf(pid int) string {
	return machineMark() + "/" + strconv.Itoa(pid) + "/" + StartTime(pid)
}

// StartTime returns when a process was started, in the kernel's own unit; empty if there is no such
// process.
func StartTime(pid int) string {
	if fields := proc.Stat(strconv.Itoa(pid)); len(fields) > 19 {
		return fields[19]
	}
	return ""
}

// statOf returns the fields of a process in the kernel's table from the third on, which comes after
// its name, or nil if there is no such process. The name in brackets may hold anything, brackets
// included.
// leftBehind reports whether the owner of a container is a process of this machine that has ended.
func leftBehind(owner string) bool {
	parts := strings.Split(owner, "/")
	if len(parts) != 4 || parts[0]+"/"+parts[1] != machineMark() {
		return false
	}
	pid, err := strconv.Atoi(parts[2])
	return err == nil && ownerOf(pid) != owner
}

// Sweep removes the containers that killed processes have left, those of builds too, and returns
// how many.
func (e *Engine) Sweep(ctx context.Context) (int, error) {
	format, args := `{{.ID}} {{index .Labels "`+labelOwner+`"}}`, []string{"--external"}
	if e.Kind == IsolationDocker {
		format, args = `{{.ID}} {{.Label "`+labelOwner+`"}}`, []string{"--filter", "label=" + labelOwner}
	}
	args = append([]string{"ps", "--all", "--no-trunc", "--format", format}, args...)
	text, err := e.output(ctx, args...)
	if err != nil {
		return 0, err
	}
	var left, unmarked []string
	for line := range strings.Lines(text) {
		id, owner, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch owner = strings.TrimSpace(owner); {
		case leftBehind(owner):
			left = append(left, id)
		case !strings.Contains(owner, "/"):
			unmarked = append(unmarked, id)
		}
	}
	if len(unmarked) > 0 && e.Kind == IsolationPodman {
		builds, err := e.leftBuilds(ctx, unmarked)
		if err != nil {
			return 0, err
		}
		left = append(left, builds...)
	}
	return len(left), e.removeContainers(ctx, left...)
}

// buildOwner marks the containers of a build: they have no labels, but keep the name of a control
// group, which they do not use because their processes are below the build's own.
func buildOwner() []string { return []string{"--cgroup-parent", buildMark + ownerOf(os.Getpid())} }

const buildMark = "/fit/"

// leftBuilds returns the containers that the builds of killed processes have left.
func (e *Engine) leftBuilds(ctx context.Context, ids []string) ([]string, error) {
	dir, err := e.output(ctx, "info", "--format", "{{.Store.GraphRoot}}/{{.Store.GraphDriverName}}-containers")
	if err != nil {
		return nil, err
	}
	var left []string
	for _, id := range ids {
		content, err := os.ReadFile(filepath.Join(strings.TrimSpace(dir), id, "userdata", "buildah.json"))
		if err != nil {
			continue // it is not a container of a build, or it is gone
		}
		var build struct{ CommonBuildOpts struct{ CgroupParent string } }
		if json.Unmarshal(content, &build) != nil {
			continue
		}
		owner, ours := strings.CutPrefix(build.CommonBuildOpts.CgroupParent, buildMark)
		if ours && leftBehind(owner) {
			left = append(left, id)
		}
	}
	return left, nil
}

var swept sync.Map // engines by program, once per process

// sweepOnce removes what earlier processes have left, before the first container of this one.
func (e *Engine) sweepOnce(ctx context.Context) error {
	if _, done := swept.LoadOrStore(e.program, true); done {
		return nil
	}
	if _, err := e.Sweep(ctx); err != nil {
		return fmt.Errorf("remove stale containers: %w", err)
	}
	return nil
}

// removeContainers kills and removes containers; it ignores those that are gone. podman refuses to
// kill one that ends by itself at that moment, and removes it when it is asked again.
func (e *Engine) removeContainers(ctx context.Context, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	args := []string{"rm", "--force"}
	if e.Kind == IsolationPodman {
		args = append(args, "--time", "0", "--ignore", "--depend")
	}
	policy := retry.Policy{Retries: 6, First: 50 * time.Millisecond, Longest: time.Second}
	return policy.Do(ctx, func(int) error {
		_, err := e.output(ctx, append(args, names...)...)
		failed, ok := errors.AsType[*engineError](err)
		if !ok {
			return err
		}
		said := strings.ToLower(failed.Said)
		switch {
		case strings.Contains(said, "no such container"), strings.Contains(said, "no container with"):
			return nil
		case strings.Contains(said, "state improper"):
			return retry.Later(err, retry.Unasked)
		}
		return err
	})
}

// RemoveImages removes the images that were built for tasks, and returns how many. Those that a
// container still runs stay.
func (e *Engine) RemoveImages(ctx context.Context) (int, error) {
	text, err := e.output(ctx, "images", "--no-trunc", "--filter", "label="+labelBuild,
		"--format", "{{.Repository}}:{{.Tag}} {{.ID}}")
	if err != nil {
		return 0, err
	}
	removed := map[string]bool{} // an image may have several names
	for line := range strings.Lines(text) {
		name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(name, "<none>") {
			name = id
		}
		_, err := e.output(ctx, "rmi", name)
		switch failed, ok := errors.AsType[*engineError](err); {
		case err == nil:
			removed[id] = true
		case ok && inUse.MatchString(failed.Said):
		default:
			return len(removed), err
		}
	}
	return len(removed), nil
}

// inUse is the engines' message for an image that cannot be removed now.
var inUse = lazyregexp.New(`(?i)in use|is using|used by|no such image|not known`)
