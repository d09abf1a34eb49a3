package harnesscli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/atomicfile"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/scratch"
)

// room is where the agents of a discussion keep their conversations between two runs.
type room struct {
	dir string // empty: the discussion has no name, and nothing is kept
	own bool   // nobody asked for this place, so it is removed when the discussion is over
}

// resumeFile is what a run leaves in the room for the next one.
const resumeFile = "resume.json"

// roomsDir is where rooms are that nobody asked for, below the user's state directory.
var roomsDir = filepath.Join("fit", "discussions")

// reopenedRoom is the room of a discussion that was killed and is resumed.
func reopenedRoom(dir string) room {
	return room{dir: dir, own: strings.HasSuffix(filepath.Dir(dir), roomsDir)}
}

// openRoom finds the room of a discussion: the directory that was asked for, or one under the
// user's state directory.
func openRoom(con *console.Console, asked, discussionID string) (room, error) {
	if asked != "" {
		dir, err := filepath.Abs(con.Path(asked))
		return room{dir: dir}, err
	}
	if discussionID == "" {
		return room{}, nil
	}
	state := con.Getenv("XDG_STATE_HOME")
	if state == "" {
		home := con.Getenv("HOME")
		if home == "" {
			return room{}, nil
		}
		state = filepath.Join(home, ".local", "state")
	}
	sum := sha256.Sum256([]byte(discussionID))
	r := room{dir: filepath.Join(state, roomsDir, hex.EncodeToString(sum[:8])), own: true}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return room{}, fmt.Errorf("directory for the discussion's conversations: %w", err)
	}
	return r, nil
}

// complete fills in what the given context leaves out from what the last run has left here, and
// drops conversations that are not on this machine.
func (r room) complete(con *console.Console, given *harness.ResumeContext) *harness.ResumeContext {
	completed := harness.ResumeContext{}
	if data, err := os.ReadFile(filepath.Join(r.dir, resumeFile)); err == nil && r.dir != "" {
		stored, err := harness.ParseResumeContext(string(data))
		if err != nil {
			fmt.Fprintf(con.Stderr, "cannot read the state that the previous run left; using only what was given: "+
				"%v\n", err)
		} else if stored != nil {
			completed = *stored
		}
	}
	merge(&completed, given)
	for name := range completed.Sessions {
		if r.dir == "" || !isDirectory(filepath.Join(r.dir, name)) {
			delete(completed.Sessions, name)
			fmt.Fprintf(con.Stderr, "the earlier conversation of %s is not on this machine; it starts a new one "+
				"and is told what was said\n", name)
		}
	}
	return &completed
}

// merge lets everything that is given win over what is stored.
func merge(stored, given *harness.ResumeContext) {
	stored.CorrelationID, stored.HistorySince = given.CorrelationID, given.HistorySince
	if len(given.Participants) > 0 {
		stored.Participants = given.Participants
	}
	if len(given.Replies) > 0 {
		stored.Replies = given.Replies
	}
	if len(given.Pending) > 0 {
		stored.Pending = given.Pending
	}
	if given.Reason != "" {
		stored.Reason, stored.Trigger = given.Reason, given.Trigger
	}
	if len(given.Sessions) > 0 {
		stored.Sessions = given.Sessions
	}
	stored.AskIDCounter = max(stored.AskIDCounter, given.AskIDCounter)
	stored.RFCCounter = max(stored.RFCCounter, given.RFCCounter)
}

// leave keeps the room for the next run of a discussion that is in recess, and clears one that
// nobody needs any more.
func (r room) leave(result harness.Result) error {
	switch {
	case r.dir == "":
		return nil
	case result.Verdict == harness.VerdictRecessed && result.Resume != nil:
		data, err := json.Marshal(result.Resume)
		if err != nil {
			return err
		}
		return atomicfile.WriteSynced(filepath.Join(r.dir, resumeFile), 0o600, data)
	case result.Reason != harness.ReasonConcluded: // it may be tried again
		return nil
	case r.own:
		return scratch.RemoveAll(r.dir)
	default:
		if err := os.Remove(filepath.Join(r.dir, resumeFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
}
