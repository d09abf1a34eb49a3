package document

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// billionLaughs is a document of a few hundred bytes that stands for 9 to the power of levels.
func billionLaughs(levels int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n")
	for i := 1; i < levels; i++ {
		alias := fmt.Sprintf("*a%d", i-1)
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(alias+", ", 9), ", "))
	}
	return b.String()
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: 1\n", i)
	}
	return b.String()
}

func TestBombsAreRefusedBeforeTheyAreExpanded(t *testing.T) {
	for name, source := range map[string]string{
		"aliases of aliases": billionLaughs(9),
		"long scalars":       "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a, ", 100) + "]\n",
		"a loop":             "a: &a [*a]\n",
		"a long text":        "a: " + strings.Repeat("x", 5<<20),
		"many keys":          manyKeys(20_000),
		"flow depth":         strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"block depth":        strings.Repeat("- ", 5000) + "x",
		"depth by aliases": func() string {
			var b strings.Builder
			b.WriteString("a0: &a0 x\n")
			for i := 1; i < 200; i++ {
				fmt.Fprintf(&b, "a%d: &a%d [*a%d]\n", i, i, i-1)
			}
			return b.String()
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			begin := processorTime(t)
			if _, err := Parse("x.yaml", []byte(source)); err == nil || !strings.Contains(err.Error(), "x.yaml:") {
				t.Errorf("it was accepted: %v", err)
			}
			if took := processorTime(t) - begin; took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestOrdinaryAliasesAreExpanded(t *testing.T) {
	doc, err := Parse("x.yaml", []byte("base: &base {a: 1}\none: *base\nlist: [*base, *base]\nmerged: {<<: *base, b: 2}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		One    map[string]int
		List   []map[string]int
		Merged map[string]int
	}
	if err := doc.Decode(&got); err != nil || got.One["a"] != 1 || len(got.List) != 2 || got.Merged["a"] != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Parse("x.yaml", []byte(billionLaughs(4))); err != nil {
		t.Errorf("a few thousand values: %v", err)
	}
}

// A file with a problem on each of its lines is refused as quickly as one with a few.
func TestManyProblemsAreCutShort(t *testing.T) {
	type settings struct {
		Ports []int `json:"ports" yaml:"ports"`
	}
	for name, source := range map[string]string{
		"values": "ports:\n" + strings.Repeat("- &a none\n", 100_000),
		"keys":   "ports: []\n" + numbered("key%d: 1\n", 4_900),
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := Parse("file.yaml", []byte(source))
			if err != nil {
				t.Fatal(err)
			}
			began := processorTime(t)
			err = parsed.Conforms(settings{})
			if took := processorTime(t) - began; took > 5*time.Second { // a minute and more without the bound
				t.Errorf("it took %v", took)
			}
			if n := len(problems(err)); n < 2 || n > maxProblems+1 {
				t.Errorf("%d problems are reported", n)
			}
		})
	}
}

// processorTime does not depend on what else the machine does.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func numbered(format string, n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, format, i)
	}
	return all.String()
}
