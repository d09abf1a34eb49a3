package pi

import (
	"testing"

	"github.com/fit-eval/fit/session/sessiontest"
)

var recorded = []string{"0.73.1", "disk"}

func TestPagesOfRecordings(t *testing.T) {
	for _, dir := range recorded {
		t.Run(dir, func(t *testing.T) { sessiontest.Golden(t, "testdata/"+dir+"/*.jsonl", New().Dialects()) })
	}
}

func TestRecordingsMutatedByMeaning(t *testing.T) {
	for _, dir := range recorded {
		t.Run(dir, func(t *testing.T) { sessiontest.Mutations(t, "testdata/"+dir+"/*.jsonl", New().Dialects()) })
	}
}

func TestRecordingsSurviveATIF(t *testing.T) {
	for _, dir := range recorded {
		sessiontest.RoundTrip(t, "testdata/"+dir+"/*.jsonl", New().Dialects())
	}
}
