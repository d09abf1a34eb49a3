package harness

import (
	"errors"
	"slices"
)

// Members returns the lead and the participants as they will take part, their profiles read and
// their defaults filled in, the lead first.
func (f *Facilitator) Members() []AgentConfig { return f.loop.members() }

// Members returns the lead and the participants as they will take part, their profiles read and
// their defaults filled in, the lead first.
func (s *Supervisor) Members() []AgentConfig { return s.loop.members() }

// Members returns the lead and the participants as they will take part, their profiles read and
// their defaults filled in, the lead first.
func (d *Discusser) Members() []AgentConfig { return d.loop.members() }

// Members returns the judge as it will work.
func (j *Judge) Members() []AgentConfig { return j.loop.members() }

func (l *loop) members() []AgentConfig {
	list := make([]AgentConfig, len(l.hub.state.order))
	for i, m := range l.hub.state.order {
		list[i] = m.config
	}
	return list
}

// Interrupted is what a trace says of a session that can be resumed.
type Interrupted struct {
	Mode    Mode
	Members []AgentConfig // the lead first
	// Isolation is what kept the agents from the rest of the machine: bwrap or none; empty if the
	// trace does not say.
	Isolation string
	// Network is what the agents reached: host, model or none; empty if the trace does not say.
	Network string
	// HomeDir is where the members keep their conversations; empty if it is a temporary directory
	// that ends with the session.
	HomeDir string
	// ToolTransport is how the agents reached the session's tools, as Options said.
	ToolTransport string
}

var errEnded = errors.New("the session has ended; there is nothing to resume")

// Inspect reads the trace of a session that Resume could continue.
func Inspect(tracePath string) (Interrupted, error) {
	p, err := readPast(tracePath)
	if err != nil {
		return Interrupted{}, err
	}
	if slices.ContainsFunc(p.events, func(e event) bool { _, is := e.(summaryEvent); return is }) {
		return Interrupted{}, errEnded
	}
	past := Interrupted{
		Mode:          p.start.Mode,
		Members:       p.start.Members,
		Isolation:     p.start.Isolation,
		Network:       p.start.Network,
		ToolTransport: p.start.Settings.ToolTransport,
	}
	if !p.start.Settings.TempHome {
		past.HomeDir = p.start.Settings.HomeDir
	}
	return past, nil
}
