// Package containertest gives tests a real container engine, a static program to be the first
// process of containers, and a small image made of the machine's own programs. Remove removes
// everything again.
package containertest

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
)

// programs are the programs of the image that the machine has.
var programs = []string{
	"bash", "sh", "cat", "chmod", "chown", "cp", "cut", "date", "dd", "env", "find", "git", "grep", "head", "id", "ln",
	"ls", "mkdir", "mv", "ps", "rm", "sed", "seq", "setsid", "sleep", "sort", "stat", "tail", "touch", "tr", "wc",
	"nproc", "mount",
}

// libraries are what programs of the machine need that a test may mount.
var libraries = []string{
	"libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
	"libatomic.so.1", "libresolv.so.2", "libnss_files.so.2",
}

var made struct {
	sync.Mutex
	dir    string
	engine string
	image  string
}

// needPodman returns the path of podman. For users other than root it has limits and further users
// on some machines only.
func needPodman(t testing.TB) string {
	t.Helper()
	if os.Getuid() != 0 {
		testenv.Missing(t, "root, whose containers have limits and users of their own: run it as root")
	}
	return testenv.NeedTool(t, sandbox.IsolationPodman)
}

// Engine returns podman, and makes sure that containers have a static build of fit.
func Engine(t testing.TB) *sandbox.Engine {
	t.Helper()
	needPodman(t)
	engine, err := sandbox.FindEngine(context.Background(), sandbox.IsolationPodman)
	if err != nil {
		t.Fatal(err)
	}
	Helper(t)
	return engine
}

// Helper builds the first process of containers without cgo, which the race detector needs in
// tests, and makes containers run it.
func Helper(t testing.TB) string {
	t.Helper()
	path := filepath.Join(workDir(t), "fit")
	made.Lock()
	defer made.Unlock()
	if _, err := os.Stat(path); err != nil {
		build := exec.Command("go", "build", "-ldflags=-s -w", "-o", path,
			"github.com/fit-eval/fit/test/containers/helper")
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build fit: %v\n%s", err, out)
		}
	}
	if err := os.Setenv(sandbox.HelperVariable, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func workDir(t testing.TB) string {
	t.Helper()
	made.Lock()
	defer made.Unlock()
	if made.dir == "" {
		dir, err := os.MkdirTemp("", "fit-containertest-")
		if err != nil {
			t.Fatal(err)
		}
		made.dir = dir
	}
	return made.dir
}

// Image returns the name of a small image with a shell, a few programs, and the users root and
// agent.
func Image(t testing.TB) string {
	t.Helper()
	engine := needPodman(t)
	made.Lock()
	defer made.Unlock()
	if made.image != "" {
		return made.image
	}
	var content bytes.Buffer
	if err := writeImage(&content); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("localhost/fit-test-%d:1", os.Getpid())
	load := exec.Command(engine, "import", "--change", "WORKDIR /app", "--change", "ENV PATH=/bin",
		"--change", "ENV IN_IMAGE=yes", "-", name)
	load.Stdin = &content
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("podman import: %v\n%s", err, out)
	}
	made.engine, made.image = engine, name
	return name
}

// pythonTrees are the parts of the machine's Python that a suite of pytest needs.
var pythonTrees = []string{
	"/usr/lib/python3.*/*", "/usr/lib/python3/dist-packages/*pytest*",
	"/usr/lib/python3/dist-packages/pluggy*", "/usr/lib/python3/dist-packages/iniconfig*",
	"/usr/lib/python3/dist-packages/packaging*", "/usr/lib/python3/dist-packages/attr*",
	"/usr/lib/python3/dist-packages/py", "/usr/lib/python3/dist-packages/py.py",
	"/usr/lib/*-linux-gnu/libexpat.so*", "/lib/*-linux-gnu/libz.so*",
}

// pythonRest is what it does not need, and is large.
var pythonRest = lazyregexp.New(`/(config-.*|test|idlelib|lib2to3|pydoc_data|ensurepip|distutils|__pycache__)$`)

// Python returns the name of an image over the small one that has the machine's Python with pytest.
func Python(t testing.TB) string {
	t.Helper()
	testenv.NeedTool(t, "/usr/bin/python3")
	base, dir := Image(t), t.TempDir()
	real, err := filepath.EvalSymlinks("/usr/bin/python3")
	if err != nil {
		t.Fatal(err)
	}
	copies := []string{"cp", "--archive", "--parents", "/usr/bin/python3", real}
	for _, pattern := range pythonTrees {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		copies = append(copies, slices.DeleteFunc(found, pythonRest.MatchString)...)
	}
	text := "FROM " + base + "\nCOPY files /\nENV PATH=/bin:/usr/bin\n"
	name := strings.TrimSuffix(base, ":1") + "-python:1"
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "files"), 0o755),
		os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{
		append(copies, filepath.Join(dir, "files")),
		{made.engine, "build", "--quiet", "--pull=never", "--label", "dev.fit.build=test", "--tag", name, dir},
	} {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = "/" // where cp looks for the parents
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", argv[0], err, out)
		}
	}
	return name
}

// Left lists the containers of the small image that are there.
func Left() (string, error) {
	made.Lock()
	defer made.Unlock()
	if made.image == "" {
		return "", nil
	}
	return List("ps", "--all", "--filter", "ancestor="+made.image, "--format", "{{.Names}}")
}

// List asks podman for a list, and retries if another process removes one of its items meanwhile.
func List(args ...string) (out string, err error) {
	for range 20 {
		var text []byte
		if text, err = exec.Command(sandbox.IsolationPodman, args...).Output(); err == nil {
			return string(text), nil
		}
	}
	return "", err
}

// Remove removes what the tests of a package have made. Their TestMain calls it at the end.
func Remove() {
	made.Lock()
	defer made.Unlock()
	if made.image != "" {
		_ = exec.Command(made.engine, append([]string{"rmi", "--force", made.image}, built()...)...).Run()
	}
	if made.dir != "" {
		_ = os.RemoveAll(made.dir)
	}
	made.image, made.dir = "", ""
}

// built returns the images that fit has built on the small image, and on no other.
func built() []string {
	const format = "{{.Id}} {{index .RootFS.Layers 0}}"
	all, err := List("images", "--quiet", "--no-trunc", "--filter", "label=dev.fit.build")
	if err != nil {
		return nil
	}
	// Some may be gone by now, which the error says; the others are listed.
	images := append([]string{"image", "inspect", "--format", format, made.image}, strings.Fields(all)...)
	text, _ := exec.Command(made.engine, images...).Output()
	base, rest, _ := strings.Cut(string(text), "\n")
	_, layer, _ := strings.Cut(base, " ")
	var found []string
	for line := range strings.Lines(rest) {
		if id, lowest, _ := strings.Cut(strings.TrimSpace(line), " "); lowest == layer {
			found = append(found, id)
		}
	}
	return found
}

var libraryPath = lazyregexp.New(`(?m)(?:=> |^\s*)(/\S+) \(0x`)

// writeImage writes the files of the image as an archive.
func writeImage(to io.Writer) error {
	files := map[string]string{} // by the path in the image
	for _, dir := range []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu"} {
		for _, name := range libraries {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				files[strings.TrimPrefix(filepath.Join(dir, name), "/")] = filepath.Join(dir, name)
			}
		}
	}
	for _, program := range programs {
		path, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		files["bin/"+program] = path
		needs, err := exec.Command("ldd", path).Output()
		if err != nil {
			continue
		}
		for _, match := range libraryPath.Get().FindAllSubmatch(needs, -1) {
			files[strings.TrimPrefix(string(match[1]), "/")] = string(match[1])
		}
	}
	archive := tar.NewWriter(to)
	for name, text := range map[string]string{
		"etc/passwd":    "root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n",
		"etc/group":     "root:x:0:\nagent:x:1000:\nextra:x:2000:agent\n",
		"app/image.txt": "from the image\n",
	} {
		if err := addFile(archive, name, 0o644, []byte(text)); err != nil {
			return err
		}
	}
	for _, dir := range []string{"tmp/", "root/", "home/agent/", "usr/bin/", "var/tmp/"} {
		header := &tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o1777}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
	}
	link := &tar.Header{
		Name:     "usr/bin/env",
		Typeflag: tar.TypeSymlink,
		Linkname: "/bin/env",
		Mode:     0o777,
	}
	if err := archive.WriteHeader(link); err != nil {
		return err
	}
	for name, source := range files {
		content, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		if err := addFile(archive, name, 0o755, content); err != nil {
			return err
		}
	}
	return archive.Close()
}

func addFile(archive *tar.Writer, name string, mode int64, content []byte) error {
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := archive.Write(content)
	return err
}
