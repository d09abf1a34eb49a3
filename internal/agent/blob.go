package agent

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fit-eval/fit/trace"
)

// BlobRef refers to what an agent printed. The bytes are not stored twice: they are in the agent's
// lane of the trace.
type BlobRef struct {
	Path   string `json:"path"`             // the trace
	Lane   string `json:"lane,omitempty"`   // the source whose events are meant
	Type   string `json:"type,omitempty"`   // only events of this type: stderr
	Bytes  int64  `json:"bytes"`            // as printed
	SHA256 string `json:"sha256,omitempty"` // of the bytes as printed, before redaction
}

// WriteTo writes the lines of the lane, one native event per line, to w.
func (b BlobRef) WriteTo(w io.Writer) (int64, error) {
	file, err := os.Open(b.Path)
	if err != nil {
		return 0, fmt.Errorf("read agent output: %w", err)
	}
	defer file.Close()
	var written int64
	reader := trace.NewReader(file)
	for {
		line, err := reader.Next()
		if err == io.EOF {
			return written, nil
		}
		if err != nil {
			return written, fmt.Errorf("read agent output: %w", err)
		}
		if line.Problem != nil || line.Source != b.Lane || !b.wants(line.Event) {
			continue
		}
		n, err := w.Write(append(append([]byte(nil), line.Event...), '\n'))
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
}

func (b BlobRef) wants(event []byte) bool {
	isStderr := strings.HasPrefix(string(event[:min(len(event), 16)]), `{"type":"stderr"`)
	return isStderr == (b.Type == trace.TypeStderr)
}
