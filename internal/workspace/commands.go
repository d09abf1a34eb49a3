package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/sandbox/untrusted"
)

// ownProgram is the running executable. It is looked up once, because it may be replaced while it
// runs.
var ownProgram = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
})

// hookDir returns the directory of everything that hooks and graders need beside a copy. Most
// attempts of a dataset need none of it, so it is made when the first program does.
func (w *Workspace) hookDir() (string, error) {
	dir := filepath.Join(w.Root, "hooks")
	w.hooksOnce.Do(func() {
		for _, name := range []string{"", "home", "tmp"} {
			if w.hooksErr = os.Mkdir(filepath.Join(dir, name), 0o700); w.hooksErr != nil {
				return
			}
		}
		w.hooksErr = errors.Join(w.linkCommands(), w.prepareCaches(filepath.Join(dir, "home")))
	})
	return dir, w.hooksErr
}

// programHome returns the home of the programs that hooks and graders of one copy do not trust.
func (w *Workspace) programHome(name string) (string, error) {
	own, err := w.hookDir()
	home := filepath.Join(own, "programs", name)
	w.programs.Lock()
	defer w.programs.Unlock()
	if _, missing := os.Stat(home); missing != nil && err == nil {
		err = errors.Join(os.MkdirAll(home, 0o700), w.prepareCaches(home))
	}
	return home, err
}

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
	for _, name := range append([]string{untrusted.Name}, w.cfg.Commands...) {
		if err := os.Symlink(program, filepath.Join(w.commandDir(), name)); err != nil {
			return err
		}
	}
	return nil
}

func (w *Workspace) commandDir() string { return filepath.Join(w.Root, "hooks", "bin") }

// addCommands lets a place find the commands.
func (w *Workspace) addCommands(env sandbox.Environment) (readable []string) {
	if w.containers != nil { // it has them on its search path
		return nil
	}
	_, err := w.hookDir()
	bestEffort(err) // then there are no commands, and a program that needs one says so
	env["PATH"] = w.commandDir() + string(filepath.ListSeparator) + env["PATH"]
	program, err := ownProgram()
	if err != nil {
		return nil
	}
	return []string{w.commandDir(), program}
}
