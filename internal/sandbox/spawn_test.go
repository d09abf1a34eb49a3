package sandbox_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/sandbox"
)

// run spawns a spec and returns its result and output.
func run(t *testing.T, l sandbox.Local, spec sandbox.SpawnSpec) (result sandbox.SpawnResult, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	result, err := l.Spawn(t.Context(), spec, &out, &errs)
	if err != nil {
		t.Fatalf("%q: %v", spec.Argv, err)
	}
	return result, out.String(), errs.String()
}

// everyContainment runs a test with every mechanism, the weakest included.
func everyContainment(t *testing.T, test func(t *testing.T, l sandbox.Local)) {
	t.Helper()
	eachContainment(t, test)
	t.Run(string(sandbox.ProcessGroup), func(t *testing.T) {
		test(t, sandbox.Local{Containment: sandbox.ProcessGroup})
	})
}

func TestExitCodeStreamsAndUsage(t *testing.T) {
	everyContainment(t, func(t *testing.T, l sandbox.Local) {
		before := time.Now().UnixMilli()
		result, out, errs := run(t, l, shell(`echo out; echo err >&2; exit 3`))
		if out != "out\n" || errs != "err\n" {
			t.Errorf("printed %q and %q", out, errs)
		}
		if result.ExitCode != 3 || result.Signal != "" || result.LeftoversKilled != 0 ||
			result.Containment != l.Containment {
			t.Errorf("got %+v", result)
		}
		if result.StdoutBytes != 4 || result.StderrBytes != 4 || result.Usage.MaxRSSKiB == 0 {
			t.Errorf("counted %+v", result)
		}
		if result.StartMs < before || result.EndMs < result.StartMs || result.EndMs > time.Now().UnixMilli() {
			t.Errorf("times %d to %d", result.StartMs, result.EndMs)
		}
	})
}

func TestSignalThatEndedTheProgramIsNamed(t *testing.T) {
	everyContainment(t, func(t *testing.T, l sandbox.Local) {
		result, _, _ := run(t, l, shell(`kill -SEGV $$`))
		if result.ExitCode != -1 || result.Signal != "SIGSEGV" {
			t.Errorf("got %+v", result)
		}
	})
}

func TestEnvironmentOfTheProgramIsExactlyTheGivenOne(t *testing.T) {
	t.Setenv("SECRET_OF_THE_HARNESS", "must not be seen")
	everyContainment(t, func(t *testing.T, l sandbox.Local) {
		env := []string{"A=1", "B=with = and\nnewline", "PATH=" + os.Getenv("PATH")}
		_, out, _ := run(t, l, sandbox.SpawnSpec{Argv: []string{"env", "-0"}, Env: env})
		got := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
		slices.Sort(got)
		if diff := cmp.Diff(env, got); diff != "" {
			t.Errorf("environment differs (-want +got):\n%s", diff)
		}
		_, out, _ = run(t, l, sandbox.SpawnSpec{Argv: []string{"/usr/bin/env"}})
		if out != "" {
			t.Errorf("an empty environment shows %q", out)
		}
	})
}

func TestProgramGetsNoDescriptorButItsOwn(t *testing.T) {
	// A descriptor without close-on-exec, as a careless parent leaves them open.
	leak, err := syscall.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(leak)
	everyContainment(t, func(t *testing.T, l sandbox.Local) {
		extra, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer extra.Close()
		spec := sandbox.SpawnSpec{
			Argv: []string{"sh", "-c", `ls /proc/self/fd | tr '\n' ' '; echo row >&3`},
			Env:  searchPath(), ExtraFiles: []*os.File{write},
		}
		_, out, _ := run(t, l, spec)
		// The last one is the directory that ls itself reads.
		if out != "0 1 2 3 4 " {
			t.Errorf("descriptors %q, want only stdin, stdout, stderr and the extra file", out)
		}
		write.Close()
		row, err := io.ReadAll(extra)
		if err != nil || string(row) != "row\n" {
			t.Errorf("the extra file carried %q, %v", row, err)
		}
	})
}

func TestStdin(t *testing.T) {
	everyContainment(t, func(t *testing.T, l sandbox.Local) {
		cat := sandbox.SpawnSpec{Argv: []string{"cat"}, Env: searchPath()}
		if _, out, _ := run(t, l, cat); out != "" {
			t.Errorf("no stdin gave %q", out)
		}
		cat.Stdin = strings.NewReader("from a reader")
		if _, out, _ := run(t, l, cat); out != "from a reader" {
			t.Errorf("a reader gave %q", out)
		}
		file := filepath.Join(t.TempDir(), "in")
		if err := os.WriteFile(file, []byte("from a file"), 0o600); err != nil {
			t.Fatal(err)
		}
		opened, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer opened.Close()
		cat.Stdin = opened
		if _, out, _ := run(t, l, cat); out != "from a file" {
			t.Errorf("a file gave %q", out)
		}
	})
}

func TestOpenStdinDoesNotKeepAnEndedProgram(t *testing.T) {
	everyContainment(t, func(t *testing.T, l sandbox.Local) {
		read, write := io.Pipe()
		spec := shell(`exit 0`)
		spec.Stdin = read
		start := time.Now()
		run(t, l, spec)
		if took := time.Since(start); took > patience {
			t.Errorf("it took %v", took)
		}
		if _, err := write.Write([]byte("late")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("whoever feeds the program was not told about its end: %v", err)
		}
	})
}

func TestGarbageIsDeliveredAsItIs(t *testing.T) {
	garbage := make([]byte, 3<<20+11)
	source := rand.NewChaCha8([32]byte{1})
	if _, err := source.Read(garbage); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(file, garbage, 0o600); err != nil {
		t.Fatal(err)
	}
	everyContainment(t, func(t *testing.T, l sandbox.Local) {
		_, out, _ := run(t, l, sandbox.SpawnSpec{Argv: []string{"cat", file}, Env: searchPath()})
		if sha256.Sum256([]byte(out)) != sha256.Sum256(garbage) {
			t.Errorf("%d bytes came, not the %d that were printed", len(out), len(garbage))
		}
	})
}

func TestOneWriterForBothStreamsKeepsTheirOrder(t *testing.T) {
	everyContainment(t, func(t *testing.T, l sandbox.Local) {
		var both bytes.Buffer
		_, err := l.Spawn(t.Context(), shell(`for i in 1 2 3; do echo o$i; echo e$i >&2; done`), &both, &both)
		if err != nil || both.String() != "o1\ne1\no2\ne2\no3\ne3\n" {
			t.Errorf("got %q, %v", both.String(), err)
		}
	})
}

type failingWriter struct{ after int }

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.after -= len(p); w.after < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestWriterThatFailsEndsTheRun(t *testing.T) {
	everyContainment(t, func(t *testing.T, l sandbox.Local) {
		marker := newMarker(t)
		result, err := l.Spawn(t.Context(), shell(`while :; do echo xxxxxxxxxxx || sleep `+marker+`; done`),
			&failingWriter{after: 1 << 16}, nil)
		if err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("the error of the writer is lost: %v", err)
		}
		if result.OutputLimit || result.Cancelled {
			t.Errorf("got %+v", result)
		}
		mustBeGone(t, marker)
	})
}

func TestWhatCannotBeStartedIsAnError(t *testing.T) {
	everyContainment(t, func(t *testing.T, l sandbox.Local) {
		dir := t.TempDir()
		noProgram := filepath.Join(dir, "notes.txt")
		if err := os.WriteFile(noProgram, []byte("no program"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, test := range map[string]struct {
			spec sandbox.SpawnSpec
			is   error
			says string
		}{
			"empty": {spec: sandbox.SpawnSpec{}, says: "argv is empty"},
			"not in PATH": {
				spec: sandbox.SpawnSpec{Argv: []string{"no-such-program"}, Env: searchPath()},
				is:   exec.ErrNotFound,
			},
			"no PATH at all": {spec: sandbox.SpawnSpec{Argv: []string{"sh"}}, is: exec.ErrNotFound},
			"no such file":   {spec: sandbox.SpawnSpec{Argv: []string{"/no/such/file"}}, is: fs.ErrNotExist},
			"no program":     {spec: sandbox.SpawnSpec{Argv: []string{noProgram}}, says: "exec format error"},
			"no directory": {
				spec: sandbox.SpawnSpec{Argv: []string{"/bin/sh"}, Dir: "/no/such/dir"},
				is:   fs.ErrNotExist,
			},
			"file as directory": {
				spec: sandbox.SpawnSpec{Argv: []string{"/bin/sh"}, Dir: noProgram},
				says: "not a directory",
			},
			"bad variable": {
				spec: sandbox.SpawnSpec{Argv: []string{"/bin/sh"}, Env: []string{"novalue"}},
				says: "NAME=value",
			},
			"zero byte": {spec: sandbox.SpawnSpec{Argv: []string{"/bin/sh", "a\x00b"}}, says: "zero byte"},
			"unknown isolation": {spec: sandbox.SpawnSpec{
				Argv:      []string{"/bin/sh"},
				Isolation: sandbox.Isolation{Kind: "jail"},
			}, says: "jail"},
		} {
			_, err := l.Spawn(t.Context(), test.spec, nil, nil)
			switch {
			case err == nil:
				t.Errorf("%s: no error", name)
			case test.is != nil && !errors.Is(err, test.is):
				t.Errorf("%s: %v is not %v", name, err, test.is)
			case !strings.Contains(err.Error(), test.says):
				t.Errorf("%s: %q does not say %q", name, err, test.says)
			}
		}
	})
}

func TestCancelledContextStartsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := filepath.Join(t.TempDir(), "started")
	result, err := sandbox.Local{}.Spawn(ctx, shell("touch "+file), nil, nil)
	if !errors.Is(err, context.Canceled) || !result.Cancelled {
		t.Errorf("got %+v, %v", result, err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the program was started")
	}
}

func TestWorkingDirectoryAndRelativeProgram(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "here"), []byte("#!/bin/sh\npwd\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	everyContainment(t, func(t *testing.T, l sandbox.Local) {
		_, out, _ := run(t, l, sandbox.SpawnSpec{Argv: []string{"./here"}, Dir: dir})
		if out != dir+"\n" {
			t.Errorf("ran in %q, want %q", out, dir)
		}
	})
}

func TestLargeEnvironmentAndArgumentsGetThrough(t *testing.T) {
	everyContainment(t, func(t *testing.T, l sandbox.Local) {
		large := strings.Repeat("x", 100_000)
		spec := shell(`echo ${#A} ${#B} ${#1}`)
		spec.Argv = append(spec.Argv, "sh", large)
		spec.Env = append(spec.Env, "A="+large, "B="+large)
		if _, out, _ := run(t, l, spec); out != "100000 100000 100000\n" {
			t.Errorf("got %q", out)
		}
	})
}

func TestPrivateOutputIsOnlyForThoseWhoAreGivenIt(t *testing.T) {
	everyContainment(t, func(t *testing.T, l sandbox.Local) {
		spec := shell(`sh -c 'echo forged >/proc/$PPID/fd/1; echo forged >/proc/$PPID/fd/2' >/dev/null 2>&1; sh -c 'echo child'; echo own; echo err >&2; head -c 300000 /dev/zero`)
		spec.PrivateOutput = true
		result, out, errs := run(t, l, spec)
		if head, zeros, _ := strings.Cut(out, "\x00"); head != "child\nown\n" || len(zeros) != 299999 ||
			errs != "err\n" || result.ExitCode != 0 {
			t.Errorf("%+v: %q with %d more bytes, and %q", result, head, len(zeros), errs)
		}
	})
}
