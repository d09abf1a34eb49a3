package local

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/skill"
	"github.com/fit-eval/fit/internal/treatment"
	"github.com/fit-eval/fit/ledger"
)

// stock is what an agent is to be given, what of its project makes it run programs, and what the
// machine's administrator tells it.
type stock struct {
	pieces            []treatment.Piece
	programs, managed []string
	elsewhere         string // lines of the pieces that other files of the project have too
}

// takeStock lists what the agent of the attempt is to be given, before it starts and can change
// anything: what the arm says, and what the agent reads of its project by itself.
func (a *attempt) takeStock() (err error) {
	chosen, err := a.machine.Registry.Get(a.arm.Agent)
	if err != nil {
		return err
	}
	a.stock = stock{}
	if !sandbox.Isolates(a.space.Isolation) {
		a.stock.managed = chosen.Info().ManagedFiles()
	}
	brings := a.prepared.Brings[a.arm.Name]
	if a.stock.programs, err = chosen.Info().Places.ProgramsBelow(a.space.Dir, a.context()); err != nil {
		return err
	}
	if a.context() != agent.ContextNone {
		if a.stock.pieces, err = treatment.Find(a.space.Dir, chosen.Info().Places); err != nil {
			return fmt.Errorf("find what the agent reads: %w", err)
		}
		if a.stock.elsewhere, err = treatment.Elsewhere(a.space.Dir, a.stock.pieces); err != nil {
			return fmt.Errorf("look for what the agent reads in other files: %w", err)
		}
		for i := range a.stock.pieces {
			piece := &a.stock.pieces[i]
			by, _ := broughtAt(brings, piece.Path)
			piece.From = by.From
			if piece.Kind == ledger.PieceSkill {
				piece.Others = a.otherVersions(piece.Name, piece.Body)
			}
		}
	}
	given, err := a.profile(a.space.Dir)
	if err != nil {
		return err
	}
	a.stock.add(ledger.PieceProfile, a.arm.Profile, given.SystemPrompt)
	a.stock.add(ledger.PiecePrompt, "prompt", a.arm.Prompt)
	for _, b := range brings {
		if b.Kind == ledger.PieceServer {
			a.stock.pieces = append(a.stock.pieces, treatment.Piece{
				Piece: ledger.Piece{
					Kind:   b.Kind,
					Name:   b.Name,
					Digest: b.Digest,
					From:   b.From,
				},
			})
		}
	}
	return nil
}

// otherVersions returns the bodies of a skill in the other arms of the experiment.
func (a *attempt) otherVersions(name, body string) []string {
	var others []string
	for _, brings := range a.prepared.Brings {
		for _, b := range brings {
			if b.Kind != ledger.PieceSkill || b.Name != name {
				continue
			}
			root, err := os.OpenRoot(b.Source)
			if err != nil {
				continue // it was there when the plan was made; its own arm says that it is gone
			}
			other, err := skill.Read(root, ".")
			_ = root.Close() // nothing was written
			if err == nil && other.Body != body && !slices.Contains(others, other.Body) {
				others = append(others, other.Body)
			}
		}
	}
	return others
}

// add adds a text that the arm itself holds, if there is one.
func (s *stock) add(kind, name, text string) {
	if text == "" {
		return
	}
	sum := sha256.Sum256([]byte(text))
	s.pieces = append(s.pieces, treatment.Piece{
		Piece: ledger.Piece{
			Kind:   kind,
			Name:   name,
			Digest: "sha256:" + hex.EncodeToString(sum[:]),
			From:   ledger.FromArm,
		},
		Text: text,
	})
}

// settleTreatment seals what the model was given, and ends an attempt whose model was not given
// what its arm brings, or whose agent found another way to its model. goOn says whether the attempt
// goes on otherwise.
func (a *attempt) settleTreatment(ctx context.Context, goOn bool) bool {
	found, err := a.readTreatment()
	if err != nil {
		a.note("what the model was given: %v", err)
		found = &ledger.Treatment{Context: a.context(), Unknown: "the record of the model calls could not be read"}
	}
	a.record.Treatment = found
	if !goOn {
		return false
	}
	if past := a.callsPastGateway(); past > 0 {
		if a.machine.installation(a.arm.Agent).Path != "" {
			a.record.Unverified = 1 // its commands may have printed turns in its name
		}
		return a.fail(ctx, ledger.ErrorBypass, fmt.Errorf("the agent made %d model calls that did not pass the "+
			"gateway", past))
	}
	if made, err := a.unsaid(); err != nil {
		a.note("what the agent shows as said by its model: %v", err)
	} else if made != "" {
		return a.fail(ctx, ledger.ErrorBypass, fmt.Errorf("the agent shows a reply that no model gave at "+
			"the gateway: %q", made))
	}
	if missing := notGiven(found.Pieces); len(missing) > 0 {
		return a.fail(ctx, ledger.ErrorNotDelivered, a.notGivenError(missing))
	}
	return true
}

func (a *attempt) readTreatment() (*ledger.Treatment, error) {
	known := []string{a.stock.elsewhere, a.task.Prompt}
	for _, step := range a.task.Steps {
		known = append(known, step.Prompt)
	}
	found, err := treatment.Read(treatment.Config{
		Calls:       filepath.Join(a.dir, calls.Path(agentTrace)),
		Participant: agentLane,
		Context:     a.context(),
		Pieces:      slices.Concat(a.stock.pieces, a.foreign()),
		Known:       known,
		Redactor:    a.redact,
		Unknown:     a.unknownDelivery(),
	})
	if err != nil {
		return nil, err
	}
	found.Pieces = slices.DeleteFunc(found.Pieces, func(p ledger.Piece) bool {
		return p.From == ledger.FromOther && p.Given != ledger.GivenWhole
	})
	found.Programs, found.Managed = a.stock.programs, a.stock.managed
	return found, nil
}

// foreign returns what other arms bring and this one does not, and what must therefore not reach
// its model.
func (a *attempt) foreign() []treatment.Piece {
	var foreign []treatment.Piece
	for arm, brings := range a.prepared.Brings {
		if arm == a.arm.Name {
			continue
		}
		for i := range brings {
			if piece, ok := broughtPiece(&brings[i]); ok && isForeign(piece, a.stock.pieces) {
				foreign = append(foreign, piece)
			}
		}
	}
	return foreign
}

// broughtPiece reads the text of a skill or of instructions that an arm brings. What cannot be read
// any more is its own arm's problem.
func broughtPiece(b *experiment.Bring) (treatment.Piece, bool) {
	piece := treatment.Piece{Piece: ledger.Piece{
		Kind:   b.Kind,
		Name:   b.Name,
		Digest: b.Digest,
		From:   ledger.FromOther,
	}}
	switch b.Kind {
	case ledger.PieceInstructions:
		text, err := os.ReadFile(b.Source)
		piece.Name, piece.Text = cmp.Or(b.Path, b.Name), string(text)
		return piece, err == nil
	case ledger.PieceSkill:
		root, err := os.OpenRoot(b.Source)
		if err != nil {
			return piece, false
		}
		defer root.Close()
		read, err := skill.Read(root, ".")
		if sum, err := skill.Digest(root, "."); err == nil {
			piece.Digest = sum // as in the records of its own arm
		}
		piece.Text = read.Description
		return piece, err == nil
	}
	return piece, false
}

// context is what the agent reads of its project.
func (a *attempt) context() string { return a.arm.ContextFor(a.task) }

// unknownDelivery returns why nobody can know what the model was given; empty where the record of
// its calls says it.
func (a *attempt) unknownDelivery() string {
	if a.record.Gateway == gateway.Off {
		return pastGateway + a.record.GatewayReason
	}
	if why := notRecorded(&a.prepared.Setup); why != "" {
		return why
	}
	if _, err := os.Stat(filepath.Join(a.dir, calls.Path(agentTrace))); errors.Is(err, fs.ErrNotExist) {
		return "the agent made no model call"
	}
	return ""
}

const pastGateway = "the model calls did not pass the gateway: "

// notRecorded returns why an experiment has no record of what its models are sent; empty if it has.
func notRecorded(setup *experiment.Setup) string {
	if off := gatewayOff(setup); off != "" {
		return pastGateway + off
	}
	if setup.Record == calls.RecordMeta || setup.Record == calls.RecordOff {
		return "the requests are not kept (--record " + setup.Record + ")"
	}
	return ""
}

// notGiven returns the pieces that the arm or its family declares and the model was not given.
// What an agent need not show its model at the start is not among them.
func notGiven(pieces []ledger.Piece) []ledger.Piece {
	shown := []string{
		ledger.PieceInstructions, ledger.PieceSkill, ledger.PieceAgent, ledger.PiecePrompt, ledger.PieceProfile,
	}
	var missing []ledger.Piece
	for _, piece := range pieces {
		if piece.Given == ledger.GivenAbsent && piece.From != ledger.FromTask && slices.Contains(shown, piece.Kind) {
			missing = append(missing, piece)
		}
	}
	return missing
}

// notGivenError says what was not given, and where the agent looks.
func (a *attempt) notGivenError(missing []ledger.Piece) error {
	chosen, err := a.machine.Registry.Get(a.arm.Agent)
	if err != nil {
		return err
	}
	var what []string
	for _, piece := range missing {
		name := pieceName(piece)
		if piece.Why != "" {
			name += " (" + piece.Why + ")"
		}
		what = append(what, name)
	}
	text := fmt.Sprintf("%s was not given %s", a.arm.Agent, strings.Join(what, ", "))
	if reads := placesOf(chosen.Info().Places, missing[0].Kind); len(reads) > 0 {
		text += "; it reads " + strings.Join(reads, ", ")
	}
	return errors.New(text)
}

// pieceName names a piece for people.
func pieceName(piece ledger.Piece) string {
	switch piece.Kind {
	case ledger.PiecePrompt:
		return "the prompt of the arm"
	case ledger.PieceAgent:
		return "the sub-agent " + piece.Name
	case ledger.PieceServer:
		return "the tool server " + piece.Name
	default: // skill, instructions, profile, command, settings, file
		return "the " + piece.Kind + " " + piece.Name
	}
}

// placesOf returns where an agent reads pieces of a kind.
func placesOf(places agent.Places, kind string) []string {
	switch kind {
	case ledger.PieceInstructions:
		return places.Instructions
	case ledger.PieceSkill:
		return places.Skills
	case ledger.PieceAgent:
		return places.Agents
	default:
		return nil
	}
}

// callsPastGateway returns how many turns of the model the agent shows beyond the calls that the
// gateway answered. Agents make more calls than turns: for titles, for sub-agents, and after
// failures. None makes fewer, unless it has another way to its model.
func (a *attempt) callsPastGateway() int {
	chosen, err := a.machine.Registry.Get(a.arm.Agent)
	if err != nil || a.record.Gateway != gateway.On {
		return 0
	}
	if chosen.Info().Capabilities.MaxTurns == agent.Unsupported {
		return 0 // a program that shows no turns need not ask a model at all
	}
	answered := 0
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, seat := range a.seats {
		answered += seat.Wire().Answered()
	}
	return a.record.Turns - answered
}
