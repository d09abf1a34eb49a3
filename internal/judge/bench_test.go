package judge

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/fit-eval/fit/internal/jsonenc"
)

// BenchmarkDerive reads 15,000 replies about 1,000 runs and derives their verdicts.
func BenchmarkDerive(b *testing.B) {
	settings := Settings{Panel: panel("k", "l", "m"), Prompts: builtin(b)}
	var subjects []Subject
	for i := range 1000 {
		subjects = append(subjects, subject(fmt.Sprintf("t%d", i/10), fmt.Sprintf("arm%d", i%2), i%10/2))
		subjects[i].Task.Prompt += fmt.Sprint(i)
	}
	replies := answered(settings, subjects, func(q *question, _ Member) string { return verdictJSON(Pass, cite(q)) })
	var file bytes.Buffer
	for _, reply := range replies.list {
		if err := jsonenc.Write(&file, reply); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if read, err := readReplies(bytes.NewReader(file.Bytes())); err != nil || len(read.list) != 15_000 {
				b.Fatal(err)
			}
		}
	})
	b.Run("derive", func(b *testing.B) {
		for b.Loop() {
			if result := Derive(replies, settings, subjects, nil); result.Missing != 0 {
				b.Fatal(result.Missing)
			}
		}
	})
}
