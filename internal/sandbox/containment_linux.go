package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// namespaces remembers whether a supervisor can get a PID namespace with its own /proc.
var namespaces struct {
	sync.Mutex
	tried bool
	err   error
}

// namespaceWorks returns nil, or why there is no PID namespace. The answer is a fact of the machine
// and found out once per process; an accident is not.
func namespaceWorks() error {
	namespaces.Lock()
	defer namespaces.Unlock()
	if !namespaces.tried {
		namespaces.err = tryAgain(context.Background(), probeNamespace)
		namespaces.tried = !errors.Is(namespaces.err, ErrUntested)
	}
	return namespaces.err
}

// probeNamespace returns nil, or why there is no PID namespace.
func probeNamespace() error {
	t, decoder, err := startReaper(order{Probe: true, PIDNamespace: true}, nil, nil)
	if err != nil {
		return err
	}
	defer t.line.Close()
	var answer report
	err = decoder.Decode(&answer)
	waitErr := t.process.wait()
	switch {
	case answer.Ready:
		return nil
	case answer.Failed != "":
		return answer.asError()
	default:
		return fmt.Errorf("no answer from a supervisor in a PID namespace: %w", errors.Join(err, waitErr))
	}
}

// containment chooses the mechanism for a job.
func (l Local) containment(job launch) (Containment, error) {
	if job.room != nil {
		return InsideEngine, nil
	}
	switch l.Containment {
	case ProcessGroup, SubReaper:
		return l.Containment, nil
	case "", PIDNamespace:
	default:
		return "", fmt.Errorf("unknown containment %q", l.Containment)
	}
	if job.Bwrap != nil {
		return PIDNamespace, nil // bubblewrap makes it
	}
	err := namespaceWorks()
	if err == nil {
		return PIDNamespace, nil
	}
	if l.Containment == PIDNamespace || errors.Is(err, ErrUntested) {
		return "", &setupError{Err: fmt.Errorf("no PID namespace: %w", err)}
	}
	// The program sees us in /proc.
	if err := protectMemory(); err != nil {
		return "", fmt.Errorf("close this process to others: %w", err)
	}
	return SubReaper, nil
}

func startTree(mode Containment, job launch) (processTree, int, error) {
	if mode == ProcessGroup {
		return startGroup(job)
	}
	return startSupervised(mode, job)
}
