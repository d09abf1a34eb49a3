package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"
)

// fifteenSecrets is an environment in which each default variable is set to
// something of a usual kind.
func fifteenSecrets() []string {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(alphabet string, n int) string {
		out := make([]byte, n)
		for i := range out {
			out[i] = alphabet[random.IntN(len(alphabet))]
		}
		return string(out)
	}
	var environ []string
	for i, name := range DefaultEnvVars() {
		value := word(lowers+uppers+digits+"_-", 24+3*i)
		switch name {
		case "ANTHROPIC_API_KEY":
			value = "sk-ant-api03-" + word(lowers+uppers+digits+"_-", 93)
		case "AWS_ACCESS_KEY_ID":
			value = "AKIA" + word(uppers+digits, 16)
		case "AWS_SECRET_ACCESS_KEY":
			value = word(lowers+uppers+digits+"+/", 40)
		case "DATABASE_PASSWORD":
			value = "correct horse/battery\"staple&42"
		case "GH_TOKEN":
			value = "ghp_" + word(lowers+uppers+digits, 36)
		case "MICROSOFT_APP_ID", "MICROSOFT_APP_TENANT_ID":
			value = fmt.Sprintf("%s-%s-%s-%s-%s", word("0123456789abcdef", 8), word("0123456789abcdef", 4),
				word("0123456789abcdef", 4), word("0123456789abcdef", 4), word("0123456789abcdef", 12))
		}
		environ = append(environ, name+"="+value)
	}
	return environ
}

// cleanTrace is NDJSON as agents write it, without secrets: prose, source code
// full of escapes, nested JSON, paths, hashes, and base64.
func cleanTrace(size int) [][]byte {
	random := rand.New(rand.NewPCG(3, 4))
	words := bytes.Fields([]byte(`the task is to fix a failing test in calc.go and then run go test ./... again
		because risk-free disk-cache handling of https://example.com/a/b?q=1%20two needs a token budget
		func TestAdd(t *testing.T) { t.Errorf("got %d, want %d\n", got, want) } return nil, fmt.Errorf("open %s: %w", path, err)
		<div class="x"> & 'quoted' \d+\.\d+ C:\temp\new 2f9c1d4e8b7a6053 550e8400-e29b-41d4-a716-446655440000 über naïve 日本語`))
	prose := func(n int) string {
		var b bytes.Buffer
		for b.Len() < n {
			b.Write(words[random.IntN(len(words))])
			b.WriteByte(" \n\t"[max(0, random.IntN(12)-9)])
		}
		return b.String()
	}
	blob := func(n int) string {
		raw := make([]byte, n)
		for i := range raw {
			raw[i] = byte(random.Uint32())
		}
		return base64.StdEncoding.EncodeToString(raw)
	}
	var lines [][]byte
	for total, seq := 0, 0; total < size; seq++ {
		var content any
		switch seq % 4 {
		case 0:
			content = map[string]any{"type": "text", "text": prose(600)}
		case 1:
			content = map[string]any{
				"type": "tool_use", "id": "toolu_" + blob(15), "name": "Bash",
				"input": map[string]any{"command": prose(200)},
			}
		case 2:
			inner, _ := json.Marshal(map[string]any{"stdout": prose(2000), "code": 0})
			content = map[string]any{"type": "tool_result", "content": string(inner)}
		case 3:
			content = map[string]any{"type": "image", "data": blob(1500)}
		}
		var line bytes.Buffer
		encoder := json.NewEncoder(&line)
		encoder.SetEscapeHTML(seq%8 < 2)
		_ = encoder.Encode(map[string]any{
			"source": "agent", "seq": seq,
			"event": map[string]any{"type": "assistant", "message": map[string]any{"content": []any{content}}},
		})
		lines = append(lines, line.Bytes())
		total += line.Len()
	}
	return lines
}

// wantedSpeed is what redaction must reach on data without secrets, in MB/s.
const wantedSpeed = 500

// BenchmarkClean measures the redaction of data without secrets, line by line as
// a trace writer does it and as one text, with 15 secrets loaded. Of its
// metrics, best-MB/s is the speed of the fastest run, which other load on the
// machine disturbs least, and x-contains how many times as long that takes as
// bytes.Contains over the same data in one go. It fails below the wanted speed.
func BenchmarkClean(b *testing.B) {
	r := New(Config{Environ: fifteenSecrets()})
	lines := cleanTrace(2 << 20)
	whole := bytes.Join(lines, nil)
	for _, run := range []struct {
		name string
		do   func()
	}{
		{"json-lines", func() {
			for _, line := range lines {
				r.JSON(line)
			}
		}},
		{"lane", func() {
			lane := r.Lane()
			for _, line := range lines {
				lane.Line(line)
			}
		}},
		{"bytes", func() { r.Bytes(whole) }},
		{"writer", func() {
			w := r.Writer(io.Discard)
			for rest := whole; len(rest) > 0; {
				n := min(len(rest), 32<<10)
				_, _ = w.Write(rest[:n])
				rest = rest[n:]
			}
			_ = w.Close()
		}},
	} {
		b.Run(run.name, func(b *testing.B) {
			b.SetBytes(int64(len(whole)))
			best := time.Hour
			for b.Loop() {
				began := time.Now()
				run.do()
				best = min(best, time.Since(began))
			}
			speed := float64(len(whole)) / best.Seconds() / 1e6
			b.ReportMetric(speed, "best-MB/s")
			b.ReportMetric(float64(best)/float64(containsTime(whole)), "x-contains")
			if speed < wantedSpeed && b.N > 10 {
				b.Errorf("%.0f MB/s, want %d", speed, wantedSpeed)
			}
		})
	}
}

// containsTime is the best of several times that bytes.Contains takes to find
// nothing.
func containsTime(data []byte) time.Duration {
	best := time.Hour
	for range 20 {
		began := time.Now()
		if bytes.Contains(data, []byte("QxZ-this-is-not-in-there")) {
			panic("it is in there")
		}
		best = min(best, time.Since(began))
	}
	return best
}
