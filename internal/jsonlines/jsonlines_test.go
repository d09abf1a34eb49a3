package jsonlines

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func open(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

func TestATornLineIsEndedBeforeTheNext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	file := open(t, path)
	for _, step := range []func() error{
		func() error { return Append(file, []byte(`{"a":1}`)) },
		func() error { _, err := file.WriteString(`{"a":`); return err },
		func() error { return Append(file, []byte(`{"a":2}`)) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if want := "{\"a\":1}\n{\"a\":\n{\"a\":2}\n"; err != nil || string(text) != want {
		t.Errorf("got %q, %v, want %q", text, err, want)
	}
}

func TestALineThatCannotBeWrittenLeavesTheFileAsItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	readOnly, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	if err := Append(readOnly, []byte("{}")); err == nil {
		t.Error("a file that is open for reading was written")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "{}\n" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

func TestOneWriterAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	first, second := open(t, path), open(t, path)
	if err := Lock(first); err != nil {
		t.Fatal(err)
	}
	if err := Lock(second); !errors.Is(err, ErrLocked) {
		t.Errorf("the second writer got %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := LockWait(ended, second); !errors.Is(err, ErrLocked) || !errors.Is(err, context.Canceled) {
		t.Errorf("waiting without time gave %v", err)
	}
	waited := make(chan error)
	go func() { waited <- LockWait(t.Context(), second) }()
	first.Close()
	if err := <-waited; err != nil {
		t.Errorf("waiting for the first writer gave %v", err)
	}
}

func TestTailWidensItsView(t *testing.T) {
	text := "wanted\n" + strings.Repeat("x", firstLook) + "\n"
	looks := 0
	err := Tail(strings.NewReader(text), int64(len(text)), func(end []byte) bool {
		looks++
		return strings.HasPrefix(string(end), "wanted")
	})
	if err != nil || looks != 2 {
		t.Errorf("looked %d times, %v", looks, err)
	}
	err = Tail(strings.NewReader(""), 0, func([]byte) bool { t.Error("looked at nothing"); return true })
	if err != nil {
		t.Error(err)
	}
}
