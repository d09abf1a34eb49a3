package harness

import (
	"context"
	"errors"
	"slices"

	"github.com/fit-eval/fit/internal/scratch"
)

// Session is a session of any mode that is ready to be held once.
type Session struct {
	loop  *loop
	amend string       // what is added to the task
	room  *scratch.Dir // the neutral directory of a judge, if it is ours to remove
}

// Members returns the lead and the participants as they will take part, their profiles read and
// their defaults filled in, the lead first.
func (s *Session) Members() []AgentConfig {
	list := make([]AgentConfig, len(s.loop.hub.state.order))
	for i, m := range s.loop.hub.state.order {
		list[i] = m.config
	}
	return list
}

// Run runs the session until the lead or something else ends it. The verdict is empty if a judge
// did not conclude.
func (s *Session) Run(ctx context.Context, task string) (Result, error) {
	defer s.clear()
	return s.loop.run(ctx, joinTask(task, s.amend))
}

func (s *Session) clear() {
	if s.room != nil {
		_ = s.room.Remove() // an empty directory left behind does no harm
	}
}

// Interrupted describes a session that can be resumed, as its trace records it.
type Interrupted struct {
	Mode    Mode
	Members []AgentConfig // the lead first
	// Isolation says what separated the agents from the rest of the machine: bwrap or none; empty
	// if the trace does not say.
	Isolation string
	// Network is what the agents reached: host, model or none; empty if the trace does not say.
	Network string
	// ProjectPrograms says that programs of the members' projects could run.
	ProjectPrograms bool
	// HomeDir is where the members keep their conversations; empty if it is a temporary directory
	// that ends with the session.
	HomeDir string
	// ToolTransport is how the agents reached the session's tools, as Options said.
	ToolTransport string
}

// ErrEnded is the trace of a session that has reported its end.
var ErrEnded = errors.New("the session has ended; there is nothing to resume")

// Inspect reads the trace of a session that Resume could continue.
func Inspect(tracePath string) (Interrupted, error) {
	p, err := readPast(tracePath)
	if err != nil {
		return Interrupted{}, err
	}
	if slices.ContainsFunc(p.events, func(e event) bool { _, is := e.(summaryEvent); return is }) {
		return Interrupted{}, ErrEnded
	}
	past := Interrupted{
		Mode:          p.start.Mode,
		Members:       p.start.Members,
		Isolation:     p.start.Isolation,
		Network:       p.start.Network,
		ToolTransport: p.start.Settings.ToolTransport,

		ProjectPrograms: p.start.ProjectPrograms,
	}
	if !p.start.Settings.TempHome {
		past.HomeDir = p.start.Settings.HomeDir
	}
	return past, nil
}
