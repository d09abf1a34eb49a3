package mcpserve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/sandbox"
)

// Reasons why a process is not served; the participant's name precedes them.
var (
	errNotStarted  = errors.New("'s agent did not start it")
	errNotTheAgent = errors.New("'s agent calls tools from another process")
)

// startWait is how long a call waits for a program that is just being started to be known.
const startWait = 5 * time.Second

// peer is the process at the other end of a connection.
type peer struct {
	pid     int
	started string // when, in the kernel's words: process numbers are used again
	name    string
}

func (p peer) String() string { return fmt.Sprintf("process %d (%s)", p.pid, p.name) }

// processTree is the processes of one participant's agent. One process of every program that fit
// starts for the agent may call tools, the first that connects: the agent itself or its relay,
// which connect before the agent can run a command. Programs that the agent's commands start come
// later, and may belong to the work that the agent judges. The zero value is empty.
type processTree struct {
	mu       sync.Mutex
	roots    map[int]*peer // the process of each program that calls tools, nil before it connects
	inside   bool          // the agent runs in this process, and no program that it starts may call
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
		t.roots = map[int]*peer{}
	}
	*root = pid
	t.roots[pid] = nil
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

// settle waits until every program that is being started has a root.
func (t *processTree) settle() {
	t.mu.Lock()
	changed, waiting := t.changed, t.starting > 0
	t.mu.Unlock()
	if !waiting {
		return
	}
	timer := time.NewTimer(startWait)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	}
}

// admit returns the reason why a process may not call tools, or nil.
func (t *processTree) admit(p peer) error {
	if p.pid == os.Getpid() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.inside = true
		return nil
	}
	t.settle()
	t.mu.Lock()
	defer t.mu.Unlock()
	root, found := ancestor(p.pid, t.roots)
	switch {
	case !found || p.started == "":
		return errNotStarted
	case t.inside:
		return errNotTheAgent
	case t.roots[root] == nil:
		t.roots[root] = &p
	case *t.roots[root] != p:
		return errNotTheAgent
	}
	return nil
}
