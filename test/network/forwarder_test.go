package network

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
)

// Without isolation, the process that opens sockets in a private network is there to be found: the
// attempt of the agents proves something.
func TestTheForwarderIsSeenFromOutside(t *testing.T) {
	python := testenv.NeedTool(t, "/usr/bin/python3")
	network, err := sandbox.NewPrivateNetwork()
	if err != nil {
		testenv.Missing(t, "%v", err)
	}
	defer network.Close()
	dir := t.TempDir()
	command := exec.Command(python, "-c", "TCP, UDP, ADDRESS, ABSTRACT = 1, 1, '', 'nobody'\n"+probe)
	command.Dir, command.Env = dir, append(os.Environ(), "PORT=1")
	_ = command.Run() // there is no service
	reached, err := os.ReadFile(filepath.Join(dir, "reached.txt"))
	if err != nil || !strings.Contains(string(reached), "the forwarder: open\n") {
		t.Errorf("%v: %s", err, reached)
	}
}
