package conventions

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestClaimsAboutSecurityHaveTests: docs/security.md begins with what is open, and every claim
// after the table of trust names a test that exists.
func TestClaimsAboutSecurityHaveTests(t *testing.T) {
	root := repository(t)
	page, err := os.ReadFile(filepath.Join(root, "docs/security.md"))
	if err != nil {
		t.Fatal(err)
	}
	opened, claims, found := strings.Cut(string(page), "\n## Trust\n")
	first, _, _ := strings.Cut(opened[strings.Index(opened, "\n## ")+1:], "\n")
	if !found || first != "## What is open" {
		t.Errorf("the first section is %q, and what is open stands first", first)
	}
	named := regexp.MustCompile("`(Test[A-Z]\\w*)`")
	for _, claim := range strings.Split("\n"+claims, "\n- ")[1:] {
		claim, _, _ = strings.Cut(claim, "\n\n")
		if !named.MatchString(claim) {
			t.Errorf("no test is named for: %s", claim)
		}
	}
	tests := testNames(t, root)
	for _, match := range named.FindAllStringSubmatch(string(page), -1) {
		if !tests[match[1]] {
			t.Errorf("there is no test %s", match[1])
		}
	}
}

// testNames returns the names of all tests of the repository.
func testNames(t *testing.T, root string) map[string]bool {
	t.Helper()
	names, declared := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git" || entry.Name() == ".tools"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, match := range declared.FindAllSubmatch(source, -1) {
			names[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
