package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/internal/atomicfile"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/redact"
)

// TreatmentFile is the file of a run directory with the last rehearsal.
const TreatmentFile = "treatment.json"

// rehearsalVersion is the version of its format. Fields may be added; none is renamed or removed.
const rehearsalVersion = 1

// Rehearsal is what one start of every arm against a scripted model has shown, before anything was
// spent. It has digests, counts and the beginnings of texts, not a vendor's prompt.
type Rehearsal struct {
	Version int            `json:"version"`
	Arms    []RehearsedArm `json:"arms"`
	// Pairs compare the baseline, which is the first arm, with every other arm.
	Pairs []ArmPair `json:"pairs,omitempty"`
}

// RehearsedArm is one arm's start.
type RehearsedArm struct {
	Arm          string `json:"arm"`
	Agent        string `json:"agent"`
	AgentVersion string `json:"agentVersion,omitempty"`
	Model        string `json:"model,omitempty"`
	// Treatment says what the first request gave the model. If the arm could not be rehearsed,
	// its Unknown says why.
	Treatment *ledger.Treatment `json:"treatment"`
}

// ArmPair is in what the first requests of two arms differ.
type ArmPair struct {
	Baseline string `json:"baseline"`
	Arm      string `json:"arm"`
	// Same says that nothing is known in which the two differ: a comparison of an agent with itself
	// (A/A).
	Same        bool            `json:"same,omitempty"`
	Differences []ArmDifference `json:"differences,omitempty"`
}

// ArmDifference is one thing in which two arms differ.
type ArmDifference struct {
	// What differs: model, tools, system, messages, options, or a kind of piece and its name.
	What   string `json:"what"`
	Before string `json:"before,omitempty"` // in the baseline
	After  string `json:"after,omitempty"`
	// Cause says where it comes from: CauseArm, the key of the arms that differs, or CauseAgent;
	// empty: nothing declares it.
	Cause string `json:"cause,omitempty"`
}

// The causes of differences that are not keys of arms.
const (
	CauseArm   = "arm" // a piece that one of the arms brings
	CauseAgent = "the agent or model"
)

// Write puts the rehearsal into a run directory, without secrets.
func (r *Rehearsal) Write(dir string, redactor *redact.Redactor) error {
	r.Version = rehearsalVersion
	content, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = atomicfile.Write(filepath.Join(dir, TreatmentFile), 0o600, redactor.JSON(content), []byte{'\n'})
	}
	if err != nil {
		return fmt.Errorf("keep the differences of the arms: %w", err)
	}
	return nil
}

// ReadRehearsal reads the rehearsal of a run directory; nil where there was none.
func ReadRehearsal(dir string) (*Rehearsal, error) {
	content, err := os.ReadFile(filepath.Join(dir, TreatmentFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	r := &Rehearsal{}
	if err == nil {
		err = json.Unmarshal(content, r)
	}
	if err != nil {
		return nil, fmt.Errorf("read the differences of the arms: %w", err)
	}
	return r, nil
}
