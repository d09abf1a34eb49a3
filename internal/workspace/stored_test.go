package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/skill"
)

// Digests are stored in plans and ledgers. They stay what they were, or old run directories no
// longer match their tasks and arms.
func TestStoredDigestsKeepTheirValues(t *testing.T) {
	fam, one := family(t, map[string]string{
		"workdir/a.txt": "a\n", "workdir/a/b.txt": "b\n", "workdir/a-b/run.sh": "#!/bin/sh\n",
		"workdir/link":  "-> a/b.txt",
		"workdir/é.txt": "NFC\n",
	})
	dir := filepath.Join(fam.Dir, "workdir")
	w := prepare(t, Config{Family: fam, Task: one})
	tree, err := experiment.TreeDigest(dir)
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(fam.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	skills, err := skill.Digest(root, "workdir")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, got, want string }{
		{"visible part of a task", one.Digest.Visible, "sha256:5685d3d10d6d3393eca502237368468322b74b84a5bdd425150a6cb98cb8db69"},
		{"hidden part of a task", one.Files.Hidden, "sha256:16ddaec6cd7ee87722ff5fc40e6fa28b744a7122e35d221dd8388341f5598e95"},
		{"family", fam.Revision, "sha256:55f3db6a0a1cc6575b58331a54041b79e7662a4e37972d7fc608766cc60224a7"},
		{"start of an attempt", w.StartHash(), "sha256:242db35e850e74089f427087b1fbfb6d268b500b532ad1c657c4b75523b7b5c5"},
		{"tree", tree, "sha256:1bcb12b91ee523cd6d9328578f117f425a7494eaeb746d452a75aebd692dc9b5"},
		{"skill", skills, "sha256:1cef4784cf066fb5db5a6489d8b4ee621e47c100c310afc336cc3629498cf97d"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.got != test.want {
				t.Errorf("%s: %s, want %s", test.name, test.got, test.want)
			}
		})
	}
}
