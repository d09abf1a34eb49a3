package workspace

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// sealDeadline is how long killed processes may take to disappear. Only one that hangs in the kernel takes longer.
const sealDeadline = 5 * time.Second

// Seal kills every process of the attempt but the services, and makes sure that they are gone. From then on nobody writes to Dir. A process belongs to the
// attempt if its environment carries the RunID or if it works in the attempt's directories, and so do its children.
func (w *Workspace) Seal(ctx context.Context) (Sealed, error) {
	spared := 0
	if w.services != nil {
		spared = w.services.pid
	}
	dirs := []string{w.Home, w.TmpDir}
	if !w.adopted { // in somebody else's directory somebody else may be at work
		dirs = append(dirs, w.Dir)
	}
	killed := map[int]bool{}
	deadline := time.Now().Add(sealDeadline)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		found := attemptProcesses(w.RunID, dirs, spared)
		if len(found) == 0 {
			return Sealed{Killed: len(killed)}, nil
		}
		for _, pid := range found {
			killed[pid] = true
			killProcess(pid)
		}
		if time.Now().After(deadline) {
			slices.Sort(found)
			return Sealed{Killed: len(killed) - len(found), Survivors: found}, fmt.Errorf("workspace %s: %d processes survived being killed", w.cfg.Name, len(found))
		}
		select {
		case <-ctx.Done():
			return Sealed{Killed: len(killed), Survivors: found}, ctx.Err()
		case <-time.After(pause):
		}
	}
}
