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
) (*foreign.Runs, error) {
	runs, err := foreign.Read(source, *opts)
	if err != nil || runs.Len() == 0 {
		return runs, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	traces, err := keepTraces(source, dir, runs, redactor)
	if err != nil {
		return nil, err
	}
	writer, err := ledger.Open(filepath.Join(dir, experiment.LedgerFile), ledger.Config{
		Experiment: runs.Record(0).Experiment,
		Redactor:   redactor,
		Key:        key,
		NoSync:     true, // what is lost can be read again
	}, nil)
	if err != nil {
		return nil, err
	}
	for i := range runs.Len() { // one after the other: all of them take much memory
		r := runs.Record(i)
		if kept := traces[i]; kept.bytes > 0 {
			r.RunDir, r.AgentTracePath = tracePath(&r)
			r.Artifacts = []ledger.Artifact{{
				Path:   r.AgentTracePath,
				SHA256: hex.EncodeToString(kept.sum[:]),
				Bytes:  kept.bytes,
			}}
		}
		if err := writer.Append(&r); err != nil {
			return nil, errors.Join(err, writer.Close())
		}
	}
	return runs, writer.Close()
}

// keptTrace vouches for a trace as it was written.
type keptTrace struct {
	sum   [sha256.Size]byte
	bytes int64 // 0: the run has none
}

// keepTraces writes the traces of runs, packed.
func keepTraces(source, dir string, runs *foreign.Runs, redactor *redact.Redactor) ([]keptTrace, error) {
	packer, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, err
	}
	traces := make([]keptTrace, runs.Len())
	return traces, foreign.Traces(source, runs, func(i int, line []byte) error {
		packed := packer.EncodeAll(redactor.JSON(line), nil)
		traces[i] = keptTrace{sha256.Sum256(packed), int64(len(packed))}
		r := runs.Record(i)
		_, name := tracePath(&r)
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return os.WriteFile(file, packed, 0o644)
	})
}

// tracePath returns where the trace of a run is kept, relative to the run directory.
func tracePath(r *ledger.Record) (dir, name string) {
	dir = experiment.Cell{Arm: r.Arm, TaskID: r.TaskID, RunIndex: r.RunIndex}.RunDir(r.Attempt)
	return dir, path.Join(dir, "trace.ndjson.zst")
}
