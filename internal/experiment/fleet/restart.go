package fleet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// writeErrors reads the engine's log and reports when the engine cannot write.
type writeErrors chan string

// The methods of the engine's log. Only errors matter.
func (writeErrors) Noticef(string, ...any) {}
func (writeErrors) Warnf(string, ...any)   {}
func (writeErrors) Debugf(string, ...any)  {}
func (writeErrors) Tracef(string, ...any)  {}

func (w writeErrors) Fatalf(format string, args ...any) { w.Errorf(format, args...) }

func (w writeErrors) Errorf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if strings.Contains(text, "no space left") || strings.Contains(text, "JetStream out of") {
		select {
		case w <- text:
		default: // it is known
		}
	}
}

// writeCheckEvery is how often a hub that cannot write checks whether it can.
const writeCheckEvery = 500 * time.Millisecond

// restartWhenWritable looks after the hub: it applies changes of its keys, and restarts the engine
// when its disk was full and has space again: a stream that could not be written is closed until
// then.
func (s *Server) restartWhenWritable() {
	keys := time.NewTicker(writeCheckEvery)
	defer keys.Stop()
	for {
		select {
		case <-s.full:
		case <-keys.C:
			s.lookAtKeys()
			continue
		case <-s.ended:
			return
		}
		s.cfg.Note(fmt.Sprintf("the hub cannot write to %s: no space left on device; cells wait until there is room",
			s.cfg.Dir))
		for s.tryWrite() != nil {
			select {
			case <-time.After(writeCheckEvery):
			case <-s.ended:
				return
			}
		}
		if err := s.restart(); err != nil {
			s.cfg.Note(fmt.Sprintf("%v; start it again", err))
			return
		}
		s.cfg.Note("the hub has room again and continues")
	}
}

// neededSpace is how much free space a hub needs before it continues.
const neededSpace = 4 << 20

func (s *Server) tryWrite() error {
	name := filepath.Join(s.cfg.Dir, "room")
	err := os.WriteFile(name, make([]byte, neededSpace), 0o600)
	return errors.Join(err, os.Remove(name))
}

// restart restarts the engine from its disk.
func (s *Server) restart() error {
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
	select {
	case <-s.full: // said meanwhile
	default:
	}
	return s.start()
}
