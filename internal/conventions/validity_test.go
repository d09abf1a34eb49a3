package conventions

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page on threats to validity promises a test for each, and the README for what fit holds: the
// tests exist, and no threat is left out.
func TestThePageOnValidityNamesTestsThatExist(t *testing.T) {
	root := repository(t)
	page, err := os.ReadFile(filepath.Join(root, "docs", "validity.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, threat := range []string{
		"Delivery", "Contamination", "Order", "Attrition", "Selection", "Measurement", "Tampering", "Units",
		"Multiplicity", "Drift", "Load",
	} {
		row := regexp.MustCompile(`(?m)^\| \*\*` + threat + `\*\*.*$`).Find(page)
		if !strings.Contains(string(row), "`Test") {
			t.Errorf("no test shows what is done about %s", threat)
		}
	}
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	walk(t, func(rel string) {
		if !strings.HasSuffix(rel, "_test.go") {
			return
		}
		source, err := os.ReadFile(filepath.Join(root, rel))
		if err != nil {
			return // a file that a test makes and removes meanwhile
		}
		for _, found := range declared.FindAllSubmatch(source, -1) {
			there[string(found[1])] = true
		}
	})
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(append(page, readme...), -1) {
		if !there[string(name[1])] {
			t.Errorf("docs/validity.md or README.md names %s, which does not exist", name[1])
		}
	}
}
