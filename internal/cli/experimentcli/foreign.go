package experimentcli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/report/foreign"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/redact"
)

// From says how results of other harnesses are read.
type From struct {
	format  console.Choice
	columns string
	score   string
}

// Register adds the flags.
func (f *From) Register(flags *pflag.FlagSet) {
	f.format = console.Choice{Choices: foreign.Formats()}
	flags.Var(&f.format, "from", "read results of another harness in this format (default: recognised by content)")
	flags.StringVar(&f.columns, "columns", "", "names of a table's columns, e.g. task=id,pass=ok; a table has "+
		strings.Join(foreign.Columns, ", "))
	for _, name := range []string{"scorer", "reward", "metric"} { // as Inspect, Harbor and promptfoo call it
		flags.StringVar(&f.score, name, "", "the "+name+" that counts, where results of another harness have several")
	}
}

// Options returns what the flags say.
func (f *From) Options() *foreign.Options {
	opts := &foreign.Options{Format: f.format.Value, Columns: map[string]string{}, Score: f.score}
	for _, pair := range console.List(f.columns) {
		what, name, _ := strings.Cut(pair, "=")
		opts.Columns[what] = name
	}
	return opts
}

// Import keeps the results of another harness as a run directory, with their traces. The key signs
// it; nil is none.
func Import(source, dir string, opts *foreign.Options, redactor *redact.Redactor, key *ledger.SigningKey,
) ([]ledger.Record, error) {
	records, err := foreign.Read(source, *opts)
	if err != nil || len(records) == 0 {
		return records, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	packer, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, err
	}
	err = foreign.Traces(source, records, func(r *ledger.Record, line []byte) error {
		return keepTrace(dir, r, packer.EncodeAll(redactor.JSON(line), nil))
	})
	if err != nil {
		return nil, err
	}
	writer, err := ledger.Open(filepath.Join(dir, experiment.LedgerFile), ledger.Config{
		Experiment: records[0].Experiment,
		Redactor:   redactor,
		Key:        key,
		NoSync:     true, // what is lost can be read again
	}, nil)
	if err != nil {
		return nil, err
	}
	for i := range records {
		if err := writer.Append(&records[i]); err != nil {
			return nil, errors.Join(err, writer.Close())
		}
	}
	return records, writer.Close()
}

// keepTrace writes the packed trace of a record, which vouches for it from now on.
func keepTrace(dir string, r *ledger.Record, packed []byte) error {
	cell := experiment.Cell{Arm: r.Arm, TaskID: r.TaskID, RunIndex: r.RunIndex}
	r.RunDir = cell.RunDir(r.Attempt)
	r.AgentTracePath = path.Join(r.RunDir, "trace.ndjson.zst")
	sum := sha256.Sum256(packed)
	r.Artifacts = []ledger.Artifact{{
		Path:   r.AgentTracePath,
		SHA256: hex.EncodeToString(sum[:]),
		Bytes:  int64(len(packed)),
	}}
	file := filepath.Join(dir, filepath.FromSlash(r.AgentTracePath))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, packed, 0o644)
}
