package grade

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/workspace"
)

// goBuild is one compilation of hidden tests. They are never in the agent's directory: the go
// command takes them from ours as if they were.
type goBuild struct {
	*suiteRun
	dir    string // the package, relative to the copy
	binary *goBinary
	// sources is our directory; it is gone before a test runs.
	sources string
	// overlay has the hidden files, by their path in the copy.
	overlay map[string]string
}

// buildGo compiles the tests of a package with the given hidden files.
func (s *suiteRun) buildGo(ctx context.Context, dir string, checks []task.Check) (goBinary, error) {
	binary := goBinary{
		tests: map[string][]string{}, pads: pads{Names: map[string][]string{}},
	}
	problem, err := s.changedModule(ctx)
	if problem != "" || err != nil {
		binary.failed = problem
		return binary, err
	}
	out, err := os.MkdirTemp(s.private, "build-")
	if err != nil {
		return binary, err
	}
	sources, err := os.MkdirTemp(s.private, "source-")
	if err != nil {
		return binary, err
	}
	defer func() { _ = os.RemoveAll(sources) }() // what is left is not shown to the tests
	b := goBuild{
		suiteRun: s,
		dir:      dir,
		binary:   &binary,
		sources:  sources,
		overlay:  map[string]string{},
	}
	binary.path = filepath.Join(out, "hidden.test")
	for _, check := range checks {
		if err := b.add(check); err != nil {
			binary.cannotRun = "stage failed: " + err.Error()
			return binary, nil
		}
	}
	return binary, b.compile(ctx, out)
}

// add puts a hidden file into the package, with its tests wrapped so that they give their secrets
// away when they have passed.
func (b *goBuild) add(check task.Check) error {
	source, _, err := hiddenFile(b.suite.Dir, check.File)
	if err != nil {
		return err
	}
	wrapped, err := wrapGo(source)
	if err != nil {
		return err
	}
	if len(wrapped.names) == 0 {
		return fmt.Errorf("%s has no test", check.File)
	}
	for name, pad := range wrapped.pads {
		b.binary.pads.Names[name] = append(b.binary.pads.Names[name], pad)
	}
	b.binary.tests[check.Name] = wrapped.names
	helper := path.Join(path.Dir(check.File), "fit_"+secret()+"_test.go")
	return errors.Join(b.lay(check.File, wrapped.source), b.lay(helper, wrapped.helper))
}

func (b *goBuild) lay(file string, content []byte) error {
	own := filepath.Join(b.sources, filepath.FromSlash(file))
	b.overlay[file] = own
	return errors.Join(os.MkdirAll(filepath.Dir(own), 0o700), os.WriteFile(own, content, 0o600))
}

// compile checks the agent's packages, with the hidden files in place, and links the tests. The
// program can be run and not read, so its secrets are not in a file that it can open.
func (b *goBuild) compile(ctx context.Context, out string) error {
	overlay, err := json.Marshal(map[string]any{"Replace": b.overlay})
	if err != nil {
		return err
	}
	file := filepath.Join(b.sources, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return err
	}
	flags, env := b.goBuildSettings(filepath.Join(b.sources, "cache"))
	flags = append(flags, "-overlay", file, "./"+b.dir)
	var printed capture
	list := []string{
		"go", "list", "-test", "-deps", "-export", "-json=ImportPath,ForTest,Dir,GoFiles,EmbedFiles,Module",
	}
	if err := b.command(ctx, append(list, flags...), env, out, &printed); err != nil || b.binary.unusable() {
		return err
	}
	if b.binary.failed, err = b.reaching(printed.data); err != nil || b.binary.unusable() {
		return err
	}
	if b.binary.failed, err = b.redefining(ctx); err != nil || b.binary.unusable() {
		return err
	}
	link := []string{"go", "test", "-c", "-vet=off", "-o", b.binary.path}
	if err := b.command(ctx, append(link, flags...), env, out, io.Discard); err != nil || b.binary.unusable() {
		return err
	}
	if err := os.Chmod(b.binary.path, 0o111); err != nil {
		b.binary.failed = "the tests do not compile: " + err.Error()
	}
	return nil
}

func (b goBinary) unusable() bool { return b.failed != "" || b.cannotRun != "" }

// command runs the go command in the copy, and notes why it failed.
func (b *goBuild) command(ctx context.Context, argv []string, env map[string]string, out string, watch io.Writer,
) error {
	done, err := b.run(ctx, program{
		argv:     argv,
		dir:      b.copied.Dir,
		place:    b.place,
		env:      env,
		timeout:  buildFactor * max(b.Task.Settings.Timeouts.Test, defaultTimeout),
		writable: []string{b.sources, out},
		watch:    watch,
	})
	if err != nil {
		return err
	}
	// The compiler says where we have the hidden files; authors know them by their names.
	own, err := filepath.Rel(b.copied.Dir, b.sources)
	if err != nil {
		return err
	}
	said := strings.NewReplacer(b.sources+"/", "", own+"/", "").Replace(string(done.stderr.Bytes()))
	b.keep("tests.build."+fileName(b.dir)+".log", []byte(said))
	switch {
	case done.failure != nil:
		b.binary.cannotRun = done.abortReason()
	case done.abortReason() != "":
		b.binary.failed, b.binary.accident = "the build "+done.abortReason(), done.killed()
	case done.ExitCode != 0:
		last := display.LastBytes(strings.TrimSpace(display.Text(said)), maxMessage)
		b.binary.failed = "the tests do not compile: " + strings.TrimSpace(last)
		b.binary.died, b.binary.accident = last == "", lastWords.MatchString(said)
		b.binary.told = diagnosis.MatchString(said) && !b.binary.accident
	}
	return nil
}

// goPackage is what the go command says of a package.
type goPackage struct {
	ImportPath, ForTest, Dir string
	GoFiles, EmbedFiles      []string
	Module                   *struct {
		Path string
		Main bool
	}
}

// ofTest reports whether a package is one of tests, which may embed what they like.
func (p goPackage) ofTest() bool {
	name, _, _ := strings.Cut(p.ImportPath, " ")
	return p.ForTest != "" && (name == p.ForTest || name == p.ForTest+"_test")
}

// reaching returns how a package of the agent reaches for the hidden tests. That one uses their
// names is the compiler's to say, because every package was compiled without them as well.
func (b *goBuild) reaching(listed []byte) (string, error) {
	root, err := filepath.EvalSymlinks(b.copied.Dir)
	if err != nil {
		return "", err
	}
	var packages []goPackage
	hidden := []string{"main."} // the program of the tests, which lists them
	decoder := json.NewDecoder(bytes.NewReader(listed))
	for {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", fmt.Errorf("read the list of packages: %w", err)
		}
		packages = append(packages, p)
		if p.ForTest != "" {
			hidden = append(hidden, p.ForTest+".", p.ForTest+"_test.")
		}
	}
	for _, p := range packages {
		dir, err := filepath.Rel(root, p.Dir)
		if err != nil || !filepath.IsLocal(dir) || p.ofTest() {
			continue
		}
		for _, file := range p.EmbedFiles {
			if file = path.Join(filepath.ToSlash(dir), file); b.overlay[file] != "" {
				return p.ImportPath + " embeds the hidden file " + file, nil
			}
		}
		names := hidden
		if p.Module != nil && p.Module.Main {
			names = append(slices.Clone(hidden), p.Module.Path)
		}
		for _, file := range p.GoFiles {
			generated := filepath.IsAbs(file) // by the go command, which names all tests in it
			if !generated && b.linksTo(filepath.Join(dir, file), names) {
				return p.ImportPath + " links to a name of this module: remove go:linkname from " + file, nil
			}
		}
	}
	return "", nil
}

// linksTo reports whether a file names a function or variable where the compiler would not let it,
// for the linker, that begins with one of names: hidden tests have such names.
func (b *goBuild) linksTo(file string, names []string) bool {
	source, err := b.root.ReadFile(file)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(strings.Split(string(source), "\n"), func(line string) bool {
		words := strings.Fields(line)
		return len(words) == 3 && words[0] == "//go:linkname" && slices.ContainsFunc(names, func(name string) bool {
			return strings.HasPrefix(strings.ReplaceAll(words[2], "%2e", "."), name)
		})
	})
}

// goBuildSettings decide where the compiler's cache is and where dependencies come from. The cache
// is never one that the agent could write to.
func (s *suiteRun) goBuildSettings(own string) (flags []string, env map[string]string) {
	env = goEnvironment()
	if s.place.Env["GOCACHE"] == "" {
		env["GOCACHE"] = own
	}
	env["GOCACHEPROG"] = workspace.GoCacheProgram(s.place.Env, own)
	// What the agent added of these was taken away when the copy was made, so what is there belongs
	// to the task.
	// Tables for debuggers, which nobody attaches, take a third of the time.
	flags = []string{"-buildvcs=false", "-ldflags=-w"}
	if _, err := s.root.Lstat("go.work"); err != nil {
		env["GOWORK"] = "off"
		flags = append(flags, "-mod=readonly")
	}
	if _, err := s.root.Lstat("vendor/modules.txt"); err == nil {
		flags = append(flags, "-mod=vendor")
	}
	return flags, env
}
