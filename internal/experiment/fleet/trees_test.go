package fleet

import (
	"context"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/fleet/portable"
)

func TestATreeComesBackAsItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	from := filepath.Join(w.dir, "tree")
	if err := os.MkdirAll(filepath.Join(from, "closed", "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]fs.FileMode{"a": 0o644, "closed/run": 0o755, "closed/read": 0o400} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(from, name), []byte(name), mode); err != nil {
				t.Fatal(err)
			}
		})
	}
	if err := os.Symlink("/nowhere", filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(from, "closed"), 0o500); err != nil {
		t.Fatal(err)
	}
	want, err := experiment.TreeDigest(from)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := portable.Hash(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	hub := w.dial()
	store, err := hub.js.ObjectStore(t.Context(), treesBucket)
	if err != nil {
		t.Fatal(err)
	}
	e := &Executor{cfg: Config{Hub: hub}}
	if err := e.putRoot(t.Context(), store, portable.Root{Path: from, Hash: hash}); err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(w.dir, "cache")
	if err := hub.fetchTree(t.Context(), store, cache, hash); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(cache, hash)
	for _, dir := range []string{from, to} {
		t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "closed"), 0o700) }) // else only root can remove it
	}
	if got, err := experiment.TreeDigest(to); err != nil || got != want {
		t.Errorf("%s %v, want %s", got, err, want)
	}
	if info, err := os.Stat(filepath.Join(to, "closed")); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("%v %v", info, err)
	}
	for _, wrong := range []string{"", "../x", strings.Repeat("z", 64), strings.ToUpper(hash)} {
		if err := hub.fetchTree(t.Context(), store, cache, wrong); err == nil {
			t.Errorf("%q was accepted as a hash", wrong)
		}
	}
}

// A tree that takes longer than the library's default for one request arrives.
func TestASlowTreeArrives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	big := filepath.Join(w.dir, "big")
	content := make([]byte, 3<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content) // does not compress, and never fails
	if err := os.WriteFile(big, content, 0o600); err != nil {
		t.Fatal(err)
	}
	hub := w.dial()
	store, err := hub.js.ObjectStore(t.Context(), treesBucket)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := portable.Hash(big, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := &Executor{cfg: Config{Hub: hub}}
	if err := e.putRoot(t.Context(), store, portable.Root{Path: big, Hash: hash}); err != nil {
		t.Fatal(err)
	}
	pace := time.NewTicker(2 * time.Millisecond)
	t.Cleanup(pace.Stop) // after the link, which waits for it
	slow := newLink(t, hubAddress(t, w.url), func([]byte) { <-pace.C })
	far := w.dialAt(slow.through(t, w.worker), RoleWorker)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if store, err = far.js.ObjectStore(ctx, treesBucket); err != nil {
		t.Fatal(err)
	}
	if err := far.fetchTree(ctx, store, filepath.Join(w.dir, "new"), hash); err != nil {
		t.Error(err)
	}
}
