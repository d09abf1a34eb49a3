package local

import (
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

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/gateway/calls"
	"github.com/fit-eval/fit/internal/treatment"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/profile"
)

// pieces lists what the agent of the attempt is to be given: what the arm says, and what the agent
// reads of its project by itself. It is read from the snapshot that the agent starts from, which no
// agent can change.
func (a *attempt) pieces() ([]treatment.Piece, error) {
	chosen, err := a.machine.Registry.Get(a.arm.Agent)
	if err != nil {
		return nil, err
	}
	var all []treatment.Piece
	if a.arm.Context != agent.ContextNone {
		if all, err = treatment.Find(a.space.Base().Dir, chosen.Info().Places); err != nil {
			return nil, fmt.Errorf("find what the agent reads: %w", err)
		}
		for i := range all {
			all[i].From = a.broughtBy(all[i].Path)
		}
	}
	if a.arm.Profile != "" {
		found, err := profile.Load(filepath.Join(a.space.Base().Dir, ".claude", "agents"), a.arm.Profile)
		if err != nil {
			return nil, err
		}
		all = append(all, armPiece(ledger.PieceProfile, a.arm.Profile, profile.Join(found.Persona, found.Protocol)))
	}
	if a.arm.Prompt != "" {
		all = append(all, armPiece(ledger.PiecePrompt, "prompt", a.arm.Prompt))
	}
	return all, nil
}

// armPiece is a text that the arm itself holds.
func armPiece(kind, name, text string) treatment.Piece {
	sum := sha256.Sum256([]byte(text))
	return treatment.Piece{
		Piece: ledger.Piece{
			Kind:   kind,
			Name:   name,
			Digest: "sha256:" + hex.EncodeToString(sum[:]),
			From:   ledger.FromArm,
		},
		Text: text,
	}
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
	if missing := notGiven(found.Pieces); len(missing) > 0 {
		return a.fail(ctx, ledger.ErrorNotDelivered, a.notGivenError(missing))
	}
	return true
}

func (a *attempt) readTreatment() (*ledger.Treatment, error) {
	pieces, err := a.pieces()
	if err != nil {
		return nil, err
	}
	found, err := treatment.Read(treatment.Config{
		Calls:       filepath.Join(a.dir, calls.Path(agentTrace)),
		Participant: agentLane,
		Context:     a.context(),
		Pieces:      pieces,
		Redactor:    a.redact,
		Unknown:     a.unknownDelivery(),
	})
	if err != nil {
		return nil, err
	}
	found.Programs, err = a.programs()
	return found, err
}

// context is what the agent reads of its project.
func (a *attempt) context() string {
	if a.arm.Context == agent.ContextNone {
		return agent.ContextNone
	}
	return agent.ContextProject
}

// unknownDelivery returns why nobody can know what the model was given; empty where the record of
// its calls says it.
func (a *attempt) unknownDelivery() string {
	switch {
	case a.record.Gateway == agent.GatewayOff:
		return "the model calls did not pass the gateway: " + a.record.GatewayReason
	case a.prepared.Record == calls.RecordMeta || a.prepared.Record == calls.RecordOff:
		return "the requests were not kept (--record " + a.prepared.Record + ")"
	}
	if _, err := os.Stat(filepath.Join(a.dir, calls.Path(agentTrace))); errors.Is(err, fs.ErrNotExist) {
		return "the agent made no model call"
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
		what = append(what, pieceName(piece))
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
	if a.record.Gateway != agent.GatewayOn {
		return 0
	}
	answered := 0
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, seat := range a.seats {
		answered += seat.Wire().Answered()
	}
	return a.record.Turns - answered
}

// broughtBy returns who brings a file of the working directory.
func (a *attempt) broughtBy(path string) string {
	if a.arm.Skills != "" && strings.HasPrefix(path, ".claude/") {
		return ledger.FromArm
	}
	return ledger.FromTask
}
