package acp

import (
	"testing"

	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/session/sessiontest"
)

const recordings = "testdata/*.jsonl"

func dialects() session.Dialects { return New(table[0]).Dialects() }

func TestPagesOfRecordings(t *testing.T) { sessiontest.Golden(t, recordings, dialects()) }

// TestRecordingsMutatedByMeaning leaves out the agent whose tools have no name but in the ids of
// calls, and recordings in which one line decides what others mean.
func TestRecordingsMutatedByMeaning(t *testing.T) {
	sessiontest.Mutations(t, "testdata/[^g]*-basic.jsonl", dialects())
}

func TestRecordingsSurviveATIF(t *testing.T) { sessiontest.RoundTrip(t, recordings, dialects()) }
