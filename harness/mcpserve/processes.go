package mcpserve

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/fit-eval/fit/sandbox"
)

// startWait is how long a call waits for a program that is just being started to be known.
const startWait = 5 * time.Second

// peer is the process at the other end of a connection.
type peer struct {
	pid  int
	name string
}

func (p peer) String() string { return fmt.Sprintf("process %d (%s)", p.pid, p.name) }

// processTree is the processes of one participant's agent. The zero value is empty.
type processTree struct {
	mu       sync.Mutex
	roots    map[int]bool
	starting int
	changed  chan struct{} // closed when no program is being started any more
}

// treeSpawner starts the programs of an agent and keeps its tree.
type treeSpawner struct {
	sandbox.ProcessSpawner
	tree *processTree
}

// Spawn implements sandbox.ProcessSpawner.
func (s treeSpawner) Spawn(ctx context.Context, spec sandbox.SpawnSpec, stdout, stderr io.Writer) (sandbox.SpawnResult,
	error,
) {
	root, onStart := 0, spec.OnStart
	s.tree.begin()
	spec.OnStart = func(pid int) {
		s.tree.add(pid, &root)
		if onStart != nil {
			onStart(pid)
		}
	}
	defer s.tree.remove(&root)
	return s.ProcessSpawner.Spawn(ctx, spec, stdout, stderr)
}

func (t *processTree) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.starting == 0 {
		t.changed = make(chan struct{})
	}
	t.starting++
}

func (t *processTree) add(pid int, root *int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.roots == nil {
		t.roots = map[int]bool{}
	}
	*root = pid
	t.roots[pid] = true
	t.settled()
}

func (t *processTree) remove(root *int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if *root == 0 { // it never ran
		t.settled()
		return
	}
	delete(t.roots, *root)
}

func (t *processTree) settled() {
	if t.starting--; t.starting == 0 {
		close(t.changed)
	}
}

// snapshot returns the roots, after every program that is being started has one.
func (t *processTree) snapshot() map[int]bool {
	t.mu.Lock()
	changed, waiting := t.changed, t.starting > 0
	t.mu.Unlock()
	if waiting {
		timer := time.NewTimer(startWait)
		defer timer.Stop()
		select {
		case <-changed:
		case <-timer.C:
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	roots := make(map[int]bool, len(t.roots))
	for pid := range t.roots {
		roots[pid] = true
	}
	return roots
}

// has reports whether a process is this one, in which fit's own agent runs, or one that the agent
// started.
func (t *processTree) has(p peer) bool {
	if p.pid == os.Getpid() {
		return true
	}
	return descends(p.pid, t.snapshot())
}
