package workspace

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/fit-eval/fit/sandbox"
)

// ownProgram is the file that runs now. It is looked for once, because it may be replaced while it
// runs.
var ownProgram = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
})

// linkCommands makes the commands that hooks find on their search path: the one that runs a program
// of the agent, and those that the caller names.
func (w *Workspace) linkCommands() error {
	program, err := ownProgram()
	if err != nil {
		return err
	}
	if err := os.Mkdir(w.commandDir(), 0o755); err != nil {
		return err
	}
	for _, name := range append([]string{sandbox.UntrustedName}, w.cfg.Commands...) {
		if err := os.Symlink(program, filepath.Join(w.commandDir(), name)); err != nil {
			return err
		}
	}
	return nil
}

func (w *Workspace) commandDir() string { return filepath.Join(w.Root, "hooks", "bin") }

// addCommands lets a place find the commands.
func (w *Workspace) addCommands(env sandbox.Environment, readable []string) []string {
	if w.containers != nil { // it has them where its programs are looked for
		return readable
	}
	env["PATH"] = w.commandDir() + string(filepath.ListSeparator) + env["PATH"]
	program, err := ownProgram()
	if err != nil { // then there are no commands, and linkCommands has said so
		return readable
	}
	return append(readable, w.commandDir(), program)
}
