package fleet

import (
	"slices"

	"github.com/fit-eval/fit/internal/sandbox"
)

// CommonEngine returns the kind of container engine that most keys' workers have; empty if none has
// any.
func CommonEngine(workers []Worker, version string) string {
	kinds := votes{}
	for _, w := range workers {
		if w.Protocol == Protocol && w.Fit == version {
			for _, kind := range w.Engines {
				kinds.add(kind, w.Key)
			}
		}
	}
	return kinds.winner("")
}

// votes are the keys whose workers have something, by what they have. A key counts once, whatever
// its workers say about their slots and however many they say they are.
type votes map[string]map[string]bool

func (v votes) add(value, key string) {
	if v[value] == nil {
		v[value] = map[string]bool{}
	}
	v[value][key] = true
}

// winner returns the value with the most votes; on a tie the preferred one, or else the last by
// name, and empty if there is none.
func (v votes) winner(preferred string) string {
	best := ""
	for name, keys := range v {
		switch n := len(keys); {
		case n > len(v[best]), n == len(v[best]) && best != preferred && (name == preferred || name > best):
			best = name
		}
	}
	return best
}

// Common returns the version of each agent that most keys' workers have, on a tie the one of this
// machine, and how all of them can isolate attempts: as well as possible. Workers with another
// version of fit do not count.
func Common(workers []Worker, version string, own map[string]string) (agents map[string]string, isolation string) {
	versions := map[string]votes{}
	for _, w := range workers {
		if w.Protocol != Protocol || w.Fit != version {
			continue
		}
		for _, mode := range []string{sandbox.IsolationNone, sandbox.IsolationBwrap} { // the best one last
			if isolation != sandbox.IsolationBwrap && slices.Contains(w.Isolation, mode) {
				isolation = mode
			}
		}
		for id, v := range w.Agents {
			if versions[id] == nil {
				versions[id] = votes{}
			}
			versions[id].add(v, w.Key)
		}
	}
	agents = map[string]string{}
	for id, v := range versions {
		agents[id] = v.winner(own[id])
	}
	return agents, isolation
}
