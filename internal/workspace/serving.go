package workspace

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// errServiceGone is wrapped by errors about a service of the task that ended during an attempt.
var errServiceGone = errors.New("a service of the task is gone")

// listens reports whether somebody listens on a port, in the network of a process. The kernel is
// asked and not the service, which may serve one connection only. False where nobody can tell.
func listens(pid, port int) bool {
	for _, table := range []string{"tcp", "tcp6"} {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(content)) {
			fields := strings.Fields(line)
			if len(fields) > 3 && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) && fields[3] == "0A" {
				return true
			}
		}
	}
	return false
}

// CheckServices returns an error if what the preflight hook started has ended since, or no longer
// listens on the port.
func (w *Workspace) CheckServices() error {
	s := w.services
	if s == nil {
		return nil
	}
	select {
	case <-s.done:
		return fmt.Errorf("%w: something ended all that its preflight hook started", errServiceGone)
	default:
	}
	if s.listened && !listens(s.pid, w.Port) {
		return fmt.Errorf("%w: nothing listens on port %d any more", errServiceGone, w.Port)
	}
	return nil
}
