package codex

import (
	"testing"

	"github.com/fit-eval/fit/session/sessiontest"
)

func TestPagesOfRecordings(t *testing.T) {
	for _, dir := range []string{"0.166.0", "rollout"} {
		t.Run(dir, func(t *testing.T) { sessiontest.Golden(t, "testdata/"+dir+"/*.jsonl", New().Dialects()) })
	}
}

func TestRecordingsMutatedByMeaning(t *testing.T) {
	for _, dir := range []string{"0.166.0", "rollout"} {
		t.Run(dir, func(t *testing.T) { sessiontest.Mutations(t, "testdata/"+dir+"/*.jsonl", New().Dialects()) })
	}
}

func TestRecordingsSurviveATIF(t *testing.T) {
	for _, dir := range []string{"0.166.0", "rollout"} {
		sessiontest.RoundTrip(t, "testdata/"+dir+"/*.jsonl", New().Dialects())
	}
}
