package sandbox

import (
	"errors"
	"fmt"
	"sync"
)

// errNoReaper tells a programmer what is missing.
var errNoReaper = errors.New("this binary cannot supervise: call sandbox.MaybeReaper first thing in main or TestMain")

// namespaceWorks tries once per process whether a supervisor can get a PID namespace
// with a /proc of its own. The answer is a fact of the machine.
var namespaceWorks = sync.OnceValue(probeNamespace)

// probeNamespace returns nil, or why there is no PID namespace to be had.
func probeNamespace() error {
	if !reaperReady.Load() {
		return errNoReaper
	}
	t, decoder, err := startReaper(order{Probe: true, PIDNamespace: true}, nil)
	if err != nil {
		return err
	}
	defer t.line.Close()
	var answer news
	err = decoder.Decode(&answer)
	waitErr := t.cmd.Wait()
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
	wanted := l.Containment
	switch {
	case wanted == ProcessGroup, wanted == "" && !reaperReady.Load():
		// Bubblewrap brings a PID namespace that dies with it.
		if job.bwrap && wanted == "" {
			return PIDNamespace, nil
		}
		return ProcessGroup, nil
	case !reaperReady.Load():
		return "", errNoReaper
	case wanted == SubReaper:
		return SubReaper, nil
	case job.bwrap:
		return PIDNamespace, nil
	}
	err := namespaceWorks()
	if err == nil {
		return PIDNamespace, nil
	}
	if wanted == PIDNamespace {
		return "", fmt.Errorf("no PID namespace: %w", err)
	}
	return SubReaper, nil
}

func startTree(mode Containment, job launch) (tree, int, error) {
	if mode == ProcessGroup || !reaperReady.Load() {
		return startGroup(job)
	}
	return startSupervised(mode, job)
}
