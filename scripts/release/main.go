// Command release builds everything that a version of fit is published as, from the commit that
// has its tag: archives, packages, a Homebrew formula, bills of materials and checksums. The same
// commit gives the same bytes, on any machine.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

func main() {
	r := &release{}
	flag.StringVar(&r.root, "root", "../..", "top of the repository")
	flag.StringVar(&r.out, "output", "", "directory to write to; it must not exist")
	flag.StringVar(&r.version, "version", "", "version, such as 0.1.0; the commit must have the tag v0.1.0")
	targets := flag.String("targets", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "systems to build for")
	flag.Parse()
	if err := r.run(strings.Split(*targets, ",")); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

// release is one version on its way out.
type release struct {
	root, out, version string
	revision           string    // the commit; every artefact names it
	date               time.Time // of the commit; every file has it
	stage              string    // where the files of a target are laid out before they are packed
	shared             string    // manual pages and completions, the same for all targets
}

func (r *release) run(targets []string) (err error) {
	if r.version == "" || r.out == "" {
		return errors.New("-version and -output are needed")
	}
	if err := r.checkTag(); err != nil {
		return err
	}
	if err := os.Mkdir(r.out, 0o755); err != nil {
		return fmt.Errorf("make the output directory: %w", err)
	}
	defer func() {
		if err != nil { // half a release is none
			_ = os.RemoveAll(r.out)
		}
	}()
	if r.stage, err = os.MkdirTemp("", "fit-release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.stage)
	if err := r.makeShared(); err != nil {
		return err
	}
	for _, target := range targets {
		system, processor, ok := strings.Cut(target, "/")
		if !ok {
			return fmt.Errorf("target %q is not SYSTEM/PROCESSOR", target)
		}
		if err := r.target(system, processor); err != nil {
			return fmt.Errorf("target %s: %w", target, err)
		}
	}
	if err := r.writeFormula(); err != nil {
		return err
	}
	return r.writeChecksums()
}

// checkTag makes sure that what is built is what the tag names. The version that the program
// prints comes from there, too.
func (r *release) checkTag() error {
	tags, err := r.git("tag", "--points-at", "HEAD")
	if err != nil {
		return err
	}
	found := false
	for tag := range strings.FieldsSeq(tags) {
		found = found || tag == "v"+r.version
	}
	if !found {
		return fmt.Errorf("this commit does not have the tag v%s; set it: git tag v%s", r.version, r.version)
	}
	if changes, err := r.git("status", "--porcelain", "--untracked-files=no"); err != nil || changes != "" {
		return errors.Join(err, fmt.Errorf("files differ from the commit; commit or stash them:\n%s", changes))
	}
	commit, err := r.git("show", "--no-patch", "--format=%H %ct", "HEAD")
	if err != nil {
		return err
	}
	revision, seconds, _ := strings.Cut(commit, " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("read the date of the commit: %w", err)
	}
	r.revision, r.date = revision, time.Unix(unix, 0).UTC()
	return nil
}

func (r *release) git(args ...string) (string, error) {
	command := exec.Command("git", append([]string{"-C", r.root}, args...)...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// build compiles fit for a system.
func (r *release) build(system, processor, program string) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	command := exec.Command("go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", program, "./cmd/fit")
	command.Dir, command.Stderr = r.root, os.Stderr
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor, "GOFLAGS=", "GOWORK=off")
	if err := command.Run(); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	return nil
}

// makeShared asks the program itself for its manual pages and completions.
func (r *release) makeShared() error {
	program := filepath.Join(r.stage, "fit")
	if err := r.build(runtime.GOOS, runtime.GOARCH, program); err != nil {
		return err
	}
	r.shared = filepath.Join(r.stage, "shared")
	if err := exec.Command(program, "man", filepath.Join(r.shared, "man", "man1")).Run(); err != nil {
		return fmt.Errorf("write manual pages: %w", err)
	}
	for shell, file := range map[string]string{
		"bash": "bash-completion/completions/fit",
		"zsh":  "zsh/site-functions/_fit",
		"fish": "fish/vendor_completions.d/fit.fish",
	} {
		script, err := exec.Command(program, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("write the completion of %s: %w", shell, err)
		}
		if err := write(filepath.Join(r.shared, file), script); err != nil {
			return err
		}
	}
	// bash looks for a file with the name of the command that is typed
	for _, name := range names {
		if err := os.Symlink("fit", filepath.Join(r.shared, "bash-completion", "completions", name)); err != nil {
			return err
		}
	}
	return nil
}

// names are the other names of the program; fit install-names makes the same links.
var names = []string{"fit-benchmark", "fit-eval", "fit-harness", "fit-selfedit", "fit-trace", "subq"}

func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
