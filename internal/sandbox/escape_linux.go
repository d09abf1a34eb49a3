package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/scratch"
)

// escapeAttempts prints what a program in the sandbox can do that it must not be able to. The file
// outside is one that we have made; the kernel's setting is opened and not changed.
const escapeAttempts = `while read -r key uid _; do [ "$key" != Uid: ] || break; done </proc/self/status
[ "$uid" != 0 ] || echo "` + keepsRoot + `"
{ true >>/proc/sys/kernel/core_pattern; } 2>/dev/null && echo "the kernel's settings can be written"
{ true <"$1"; } 2>/dev/null && echo "files outside can be read"
{ echo escaped >"$1"; } 2>/dev/null # which may make a file of the sandbox's own
touch /dev/null 2>/dev/null && echo "the times of device files can be set, which later runs can read"
[ ! -r /etc/shadow ] || echo "the machine's passwords can be read"
echo tried`

const harmless = "harmless\n"

// TryEscape starts a program that tries to get out of a sandbox, by harmless means, and reports
// what it could do.
func TryEscape(ctx context.Context) Capability {
	c := Capability{Name: "escape from bubblewrap"}
	found, err := tryEscape(ctx, Isolation{Kind: IsolationBwrap, Network: true})
	switch {
	case err != nil:
		c.Detail, c.Fix = "could not be tried: "+err.Error(), "make bubblewrap work first"
	case found != "":
		c.Detail = found
		c.Fix = "run fit as an ordinary user, or set TMPDIR to a directory on ext4, xfs, btrfs or tmpfs"
		if os.Geteuid() != 0 {
			c.Fix = "use Linux 5.12 or newer, and let users make user namespaces"
		}
	default:
		c.OK, c.Detail = true, "tried, and refused: another user's files, the kernel's settings, device files, root"
	}
	return c
}

// errNoRoom says that an escape could not be tried because there is no directory for it.
var errNoRoom = errors.New("no room for a test directory")

// tryEscape lists what a program in an isolation could do; the error is for a sandbox that does not
// start.
func tryEscape(ctx context.Context, isolation Isolation) (found string, err error) {
	dir, err := scratch.Make("", "fit-escape-")
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoRoom, err)
	}
	defer func() { err = errors.Join(err, dir.Remove()) }()
	inside, outside := filepath.Join(dir.Path, "inside"), filepath.Join(dir.Path, "outside")
	if err := errors.Join(os.Mkdir(inside, 0o700), os.WriteFile(outside, []byte(harmless), 0o600)); err != nil {
		return "", fmt.Errorf("%w: %w", errNoRoom, err)
	}
	var out strings.Builder
	isolation.Writable = []string{inside}
	if err := tryProgram(ctx, isolation, inside, &out, "sh", "-c", escapeAttempts, "sh", outside); err != nil {
		return "", err
	}
	if content, err := os.ReadFile(outside); err != nil || string(content) != harmless {
		return "files outside can be written", nil
	}
	found, tried := strings.CutSuffix(strings.TrimSpace(out.String()), "tried")
	if !tried {
		return "", errors.New("the program that tries did not end: " + display.Line(found))
	}
	return strings.Join(strings.Split(strings.TrimSpace(found), "\n"), "; "), nil
}
