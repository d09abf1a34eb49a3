package local

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/internal/tree"
	"github.com/fit-eval/fit/ledger"
)

// packedSuffix ends the names of traces that are packed.
const packedSuffix = ".zst"

// packers are encoders that wait for the next trace: making one costs more than packing a small
// trace.
type packers struct{ pool sync.Pool }

func (p *packers) get() (*zstd.Encoder, error) {
	if encoder, ok := p.pool.Get().(*zstd.Encoder); ok {
		return encoder, nil
	}
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
}

// pack packs a file beside itself and then removes it. The packed file is complete and synced
// before it gets its name, and the plain one is removed last: whenever the process dies, one of the
// two is there and complete.
func (p *packers) pack(file string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	temporary := file + packedSuffix + ".new"
	out, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = p.copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	if err := os.Rename(temporary, file+packedSuffix); err != nil {
		return err
	}
	return os.Remove(file)
}

func (p *packers) copy(out io.Writer, in io.Reader) error {
	encoder, err := p.get()
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(out, 64<<10)
	encoder.Reset(buffered)
	_, err = io.Copy(encoder, in)
	if err = errors.Join(err, encoder.Close()); err != nil {
		return err // an encoder that failed is not used again
	}
	p.pool.Put(encoder)
	return buffered.Flush()
}

// keep packs the traces of an attempt that is over, notes the hash of everything it leaves, so that
// the sealed record vouches for it, and hands it over.
func (a *attempt) keep() error {
	if !a.prepared.KeepRaw {
		a.packTraces()
	}
	artefacts, err := hashArtefacts(a.dir, a.record.RunDir)
	if err != nil { // they can be read without
		a.note("hashes of the artefacts: %v", err)
	} else {
		a.record.Artifacts = artefacts
	}
	return a.artefacts.Keep(a.record.RunDir)
}

// packTraces packs the traces and updates their names in the record. A trace that cannot be packed
// stays as it is.
func (a *attempt) packTraces() {
	for _, file := range glob.Below(a.dir, "*.ndjson") {
		if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() || a.packers.pack(file) != nil {
			continue
		}
		old := a.artefact(filepath.Base(file))
		fields := []*string{&a.record.AgentTracePath, &a.record.SupervisorTracePath, &a.record.JudgeTracePath}
		for i := range a.record.JudgeVotes {
			fields = append(fields, &a.record.JudgeVotes[i].TracePath)
		}
		for _, field := range fields {
			if *field == old {
				*field = old + packedSuffix
			}
		}
	}
}

// hashArtefacts hashes the files of an attempt's directory. The final directory of the agent has
// its own digest, and clean removes it.
func hashArtefacts(dir, named string) ([]ledger.Artifact, error) {
	entries, err := tree.Walk{Skip: func(name string) bool { return name == FinalDir }}.Hash(dir)
	var list []ledger.Artifact
	for _, e := range entries {
		if e.IsRegular() && !strings.HasSuffix(e.Path, ".new") {
			list = append(list, ledger.Artifact{Path: path.Join(named, e.Path), SHA256: e.Sum, Bytes: e.Size})
		}
	}
	return list, err
}

// CheckArtefacts compares the files of a run directory with what its sealed records say about them.
// It returns the differences, and how many files it compared.
func CheckArtefacts(dir string, records []ledger.Record) (looked int, problems []string) {
	for i := range records {
		for _, artefact := range records[i].Artifacts {
			looked++
			local := filepath.FromSlash(artefact.Path)
			if !filepath.IsLocal(local) {
				problems = append(problems, fmt.Sprintf("%s: not a path inside the run directory", artefact.Path))
				continue
			}
			sum, size, err := tree.Sum(filepath.Join(dir, local))
			switch {
			case errors.Is(err, fs.ErrNotExist):
				problems = append(problems, fmt.Sprintf("%s: missing", artefact.Path))
			case err != nil:
				problems = append(problems, fmt.Sprintf("%s: %v", artefact.Path, err))
			case sum != artefact.SHA256:
				problems = append(problems, fmt.Sprintf("%s: %d bytes that differ from the record (%d bytes)",
					artefact.Path, size, artefact.Bytes))
			}
		}
	}
	return looked, problems
}
