package local

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
)

// refresh finds an agent again if one of its files is not the one that was found before: programs
// are updated while experiments run. On an error the last one counts; what is wrong with it shows
// when it is started.
func (m *Machine) refresh(ctx context.Context, id string) {
	found, known := m.lookUp(id)
	if !known || found.Path == "" {
		return
	}
	m.mu.Lock()
	same := m.seen[id] == fingerprint(found)
	m.mu.Unlock()
	if same {
		return
	}
	if chosen, err := m.Registry.Get(id); err == nil {
		if fresh, err := chosen.Probe(ctx, m.Host); err == nil {
			_ = m.remember(id, fresh)
		}
	}
}

// fingerprint identifies the files of an agent at little cost.
func fingerprint(found agent.Installation) string {
	var print strings.Builder
	for _, path := range append([]string{found.Path}, found.Scripts...) {
		info, err := os.Stat(path)
		if err != nil {
			fmt.Fprintf(&print, "%s missing\n", path)
			continue
		}
		fmt.Fprintf(&print, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	}
	return print.String()
}

// scriptDigests returns the digests of the scripts that an agent's entry names, by path.
func (m *Machine) scriptDigests(found agent.Installation) (map[string]string, error) {
	if len(found.Scripts) == 0 {
		return nil, nil
	}
	sums := map[string]string{}
	for _, path := range found.Scripts {
		sum, err := agent.Digest(m.Host, agent.Installation{Path: path})
		if err != nil {
			return nil, err
		}
		sums[path] = sum
	}
	return sums, nil
}
