package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/sandbox/proc"
)

// sealDeadline is how long killed processes may take to disappear. Only one that hangs in the
// kernel takes longer.
const sealDeadline = 30 * time.Second

// Seal kills every process of the attempt but the services, makes sure that they are gone, and
// takes away what the arm brought. From then on nothing writes to Dir, and only graders reach the
// services. A process belongs to the attempt if its environment carries the RunID or if it works in
// the attempt's directories, and so do its children.
func (w *Workspace) Seal(ctx context.Context) (Sealed, error) {
	w.closeOutward()
	if w.containers != nil && w.containers.env.KeepRunning {
		return Sealed{}, errors.Join(w.restoreDir(), w.Withdraw()) // its verifier finds what it left running
	}
	if err := w.closeContainers("agent", w.Dir); err != nil {
		return Sealed{}, fmt.Errorf("workspace %s: end the agent's container: %w", w.cfg.Name, err)
	}
	spared := 0
	if w.services != nil {
		spared = w.services.pid
	}
	dirs := []string{w.Home, w.TmpDir}
	if !w.adopted { // other processes may work in an adopted directory
		dirs = append(dirs, w.Dir)
	}
	killed := map[int]bool{}
	deadline := time.Now().Add(sealDeadline)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		found := proc.Find(sandbox.RunMarker+"="+w.RunID, dirs, spared)
		if len(found) == 0 {
			return Sealed{Killed: len(killed)}, errors.Join(w.restoreDir(), w.Withdraw())
		}
		for _, pid := range found {
			killed[pid] = true
			bestEffort(unix.Kill(pid, unix.SIGKILL))
		}
		if time.Now().After(deadline) {
			slices.Sort(found)
			return Sealed{Killed: len(killed) - len(found), Unkillable: found},
				fmt.Errorf("workspace %s: %d processes survived being killed", w.cfg.Name, len(found))
		}
		select {
		case <-ctx.Done():
			return Sealed{Killed: len(killed), Unkillable: found}, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// restoreDir makes sure that the working directory can be read. If the agent has removed or
// replaced it, an empty one takes its place: that is not a reason to retry.
func (w *Workspace) restoreDir() error {
	if w.adopted {
		return nil
	}
	info, err := os.Lstat(w.Dir)
	switch {
	case err == nil && info.IsDir():
		if info.Mode().Perm()&0o700 == 0o700 {
			return nil
		}
		err = os.Chmod(w.Dir, info.Mode().Perm()|0o700)
	case err == nil:
		err = errors.Join(os.Remove(w.Dir), os.Mkdir(w.Dir, 0o755))
	case errors.Is(err, fs.ErrNotExist):
		err = os.MkdirAll(w.Dir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("workspace %s: the working directory: %w", w.cfg.Name, err)
	}
	return nil
}
