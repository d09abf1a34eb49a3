package task

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// loadFiles loads a family of a few files.
func loadFiles(t testing.TB, files map[string]string, opts Options) (*Family, error) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return Load(t.Context(), dir, opts)
}

const capitals = `dataset: DATA
prompt: "What is the capital of {{country}}?"
files: {notes/country.txt: "{{country}}\n"}
reference: "{{capital}}"
grade:
  - equals: "{{capital}}"
    as: normalised
`

func TestADatasetIsAFamilyInEveryFormat(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"d.csv":   "\ufeffid,country,capital\nfr,France,Paris\nit,Italy,\"Rome\n\"\n",
		"d.jsonl": `{"id":"fr","country":"France","capital":"Paris"}` + "\n\n" + `{"id":"it","country":"Italy","capital":["Rome","Roma"]}`,
		"d.json":  `[{"id":"fr","country":"France","capital":"Paris"},` + "\n" + `{"id":"it","country":"Italy","capital":"Rome"}]`,
		"d.yaml":  "- {id: fr, country: France, capital: Paris}\n- id: it\n  country: Italy\n  capital: Rome\n",
	} {
		t.Run(name, func(t *testing.T) {
			family, err := loadFiles(t, map[string]string{
				name: content, "family.yaml": strings.ReplaceAll(capitals, "DATA", name), "workdir/README": "read me\n",
			}, Options{})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			if len(family.Tasks) != 2 || family.Tasks[1].ID != "it" {
				t.Fatalf("%s: %+v", name, family.Tasks)
			}
			first, second := family.Tasks[0], family.Tasks[1]
			if first.Prompt != "What is the capital of France?" || *first.Sample.Reference != "Paris" ||
				first.Sample.Checks[0].Want[0] != "Paris" || first.Sample.Files[0].Content != "France\n" {
				t.Errorf("%s: %q %+v", name, first.Prompt, first.Sample)
			}
			if first.Digest == second.Digest || len(first.Overlays) != 1 {
				t.Errorf("%s: %+v %+v", name, first.Digest, first.Overlays)
			}
			if err := family.CheckUnchanged(&family.Tasks[1]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

func TestSamplesShareATaskDirectoryAndHaveChecksOfTheirOwn(t *testing.T) {
	t.Parallel()
	family, err := loadFiles(t, map[string]string{
		"family.yaml":             "dataset: d.jsonl\ntask: shared\nthreshold: 0.5\n",
		"d.jsonl":                 `{"word":"a","choices":["x","y"],"grade":[{"contains":["{{word}}"]},{"choice":"y","weight":2},{"rubric":"Is it kind?"}]}`,
		"shared/agent.task.md":    "Say {{word}}:\n{{choices | letters}}\n{{\"{{\"}}",
		"shared/hooks/.keep":      "",
		"shared/workdir/file.txt": "x",
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	one := family.Tasks[0]
	checks := one.Sample.Checks
	if one.ID != "1" || one.Prompt != "Say a:\nA) x\nB) y\n{{" || len(checks) != 2 || checks[1].Want[0] != "B" ||
		checks[1].Weight != 2 || !strings.Contains(one.JudgeTemplate, "Is it kind?") ||
		one.Settings.Threshold == nil || len(one.Overlays) != 1 {
		t.Errorf("%q %+v %q", one.Prompt, checks, one.JudgeTemplate)
	}
}

func TestMistakesInADatasetNameTheirPlace(t *testing.T) {
	t.Parallel()
	base := map[string]string{
		"family.yaml": "dataset: d.csv\nprompt: \"{{q}}\"\ngrade: [{equals: \"{{a}}\"}]\n",
		"d.csv":       "id,q,a\n1,one,1\n2,two,2\n",
	}
	for want, change := range map[string]map[string]string{
		"family.yaml:2:9: prompt: {{x}} is not a column of d.csv, which has id, q, a": {
			"family.yaml": "dataset: d.csv\nprompt: \"{{x}}\"\ngrade: [{equals: a}]\n",
		},
		"d.csv:3: the id 1 is that of line 2 too; ids are unique": {
			"d.csv": "id,q,a\n1,one,1\n1,two,2\n",
		},
		"d.csv:3: not as many values as the first line has columns, which is 3": {
			"d.csv": "id,q,a\n1,one,1\n2,two\n",
		},
		"d.csv:2: the id is longer than 240 bytes, and names directories": {
			"d.csv": "id,q,a\n" + strings.Repeat("é", 50) + ",one,1\n",
		},
		"d.csv:1: two columns are called q": {"d.csv": "q,q\n"},
		"d.csv:2: the prompt is empty":      {"d.csv": "id,q,a\n1,,1\n"},
		"d.csv:2: the sample that begins here has more than 4096 bytes": {
			"d.csv": "id,q,a\n1,\"" + strings.Repeat("x", 20_000),
		},
		"d.csv: it has no samples": {"d.csv": "id,q,a\n"},
		"d.txt: a dataset is a .csv, .jsonl, .json or .yaml file": {
			"family.yaml": "dataset: d.txt\nprompt: a\n",
			"d.txt":       "x",
		},
		"d.jsonl:2: there is no column q, which the prompt names": {
			"family.yaml": "dataset: d.jsonl\nprompt: \"{{q}}\"\ngrade: [{equals: a}]\n",
			"d.jsonl":     "{\"q\":\"a\"}\n{\"p\":1}\n",
		},
		"d.json:3: there is no column q, which the prompt names": {
			"family.yaml": "dataset: d.json\nprompt: \"{{q}}\"\ngrade: [{equals: a}]\n",
			"d.json":      "[{\"q\":\"a\"},\n\n{\"p\":1}]",
		},
		"d.jsonl:1: must be one JSON object per sample": {
			"family.yaml": "dataset: d.jsonl\nprompt: a\n",
			"d.jsonl":     "[1]\n",
		},
		"d.csv:6: more than 4 samples or 1048576 bytes; write limit: 1000": {
			"d.csv": "id,q,a\n1,a,1\n2,b,1\n3,c,1\n4,d,1\n5,e,1\n",
		},
		"grade.0: a check is of one kind, not of 2 (contains, equals)": {
			"family.yaml": "dataset: d.csv\nprompt: a\ngrade: [{equals: a, contains: [b]}]\n",
		},
		"grade.0.matches: error parsing regexp": {
			"family.yaml": "dataset: d.csv\nprompt: a\ngrade: [{matches: \"(\"}]\n",
		},
		"grade.0: a gate has no weight": {
			"family.yaml": "dataset: d.csv\nprompt: a\ngrade: [{equals: a, gate: true, weight: 2}]\n",
		},
		"d.csv:2: no checks: add grade: to family.yaml": {
			"family.yaml": "dataset: d.csv\nprompt: \"{{q}}\"\n",
		},
		"d.csv: it is UTF-16; save the file as UTF-8":                               {"d.csv": "\xff\xfei\x00d\x00"},
		"d.csv:1: the only column is called \"id;q;a\"; separate columns by commas": {"d.csv": "id;q;a\n1;one;1\n"},
		"d.csv:2: contains of grade: the text is empty, which every answer contains": {
			"family.yaml": "dataset: d.csv\nprompt: a\ngrade: [{contains: [\"{{a}}\"]}]\n",
			"d.csv":       "id,q,a\n1,one,\n",
		},
		"d.csv:2: equals of grade: \"one\" is not a number, which as: number compares": {
			"family.yaml": "dataset: d.csv\nprompt: a\ngrade: [{equals: \"{{q}}\", as: number}]\n",
		},
		"d.csv:2: matches of grade: equals compares the first group": {
			"family.yaml": "dataset: d.csv\nprompt: a\ngrade: [{matches: \"{{q}}\", equals: x}]\n",
		},
		"d.jsonl:1: equals of grade: there is nothing to compare with": {
			"family.yaml": "dataset: d.jsonl\nprompt: a\ngrade: [{equals: \"{{a}}\"}]\n",
			"d.jsonl":     `{"a":[]}`,
		},
		"d.jsonl:2: must be one JSON object per sample: there are two members \"q\"": {
			"family.yaml": "dataset: d.jsonl\nprompt: a\ngrade: [{equals: a}]\n",
			"d.jsonl":     "{\"q\":1}\n{\"q\":1,\"q\":2}\n",
		},
		"d.jsonl:1: must be one JSON object per sample: the file is not valid UTF-8": {
			"family.yaml": "dataset: d.jsonl\nprompt: a\n",
			"d.jsonl":     "{\"q\":\"\xff\"}\n",
		},
		"d.json:2: there is more after the list": {
			"family.yaml": "dataset: d.json\nprompt: a\ngrade: [{equals: a}]\n",
			"d.json":      "[{\"q\":1}]\n{}",
		},
		"d.yaml:1: must be one JSON object per sample, not a number": {
			"family.yaml": "dataset: d.yaml\nprompt: a\ngrade: [{equals: a}]\n",
			"d.yaml":      "- 3\n",
		},
		"dataset is missing":       {"family.yaml": "prompt: a\n"},
		"prompt: {{ is not closed": {"family.yaml": "dataset: d.csv\nprompt: \"a {{q\"\n"},
		"there is no filter upper": {"family.yaml": "dataset: d.csv\nprompt: \"{{q | upper}}\"\n"},
		"d.jsonl:1: choice of grade: \"C\" is neither the letter nor the text of a choice": {
			"family.yaml": "dataset: d.jsonl\nprompt: a\ngrade: [{choice: C}]\n",
			"d.jsonl":     `{"choices":["x","y"]}`,
		},
		"d.jsonl:1: column grade: 0.equal: there is no such setting": {
			"family.yaml": "dataset: d.jsonl\nprompt: a\n",
			"d.jsonl":     `{"grade":[{"equal":"x"}]}`,
		},
		"a dataset needs a prompt: write prompt: with {{column}} in it, or name a task direct": {
			"family.yaml": "dataset: d.csv\n",
		},
	} {
		t.Run(want, func(t *testing.T) {
			files := maps.Clone(base)
			maps.Copy(files, change)
			bounds := &datasetBounds{samples: 4, sample: 4 << 10, all: 1 << 20}
			_, err := loadFiles(t, files, Options{datasetBounds: bounds})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("want %q, got %v", want, err)
			}
		})
	}
}

func TestAPipeIsNotADataset(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "d.csv")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRows(pipe); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe: %v", err)
	}
}

func TestADatasetMayBeginWithAMark(t *testing.T) {
	t.Parallel()
	for name, samples := range map[string]string{
		"d.csv":   "\uFEFFid,q\r\n1,\"one\r\ntwo\"\r\n",
		"d.jsonl": "\uFEFF{\"id\":\"1\",\"q\":\"one\\ntwo\"}\n",
		"d.json":  "\uFEFF[{\"id\":\"1\",\"q\":\"one\\ntwo\"}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			family, err := loadFiles(t, map[string]string{
				"family.yaml": "dataset: " + name + "\nprompt: \"{{q}}\"\ngrade: [{equals: a}]\n", name: samples,
			}, Options{})
			if err != nil || family.Tasks[0].ID != "1" || family.Tasks[0].Prompt != "one\ntwo" {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

func TestALimitReadsNoFurther(t *testing.T) {
	t.Parallel()
	family, err := loadFiles(t, map[string]string{
		"family.yaml": "dataset: d.csv\nprompt: \"{{q}}\"\ngrade: [{equals: a}]\nlimit: 2\n",
		"d.csv":       "q\na\nb\nc,this line is wrong and never read\n",
	}, Options{})
	if err != nil || len(family.Tasks) != 2 {
		t.Fatal(family, err)
	}
}

// samples500 is a dataset of the usual size.
func samples500() map[string]string {
	var data strings.Builder
	data.WriteString("id,country,capital\n")
	for i := range 500 {
		fmt.Fprintf(&data, "s%d,country %d,\"capital, of %d\"\n", i, i, i)
	}
	return map[string]string{"d.csv": data.String(), "family.yaml": strings.ReplaceAll(capitals, "DATA", "d.csv")}
}

func BenchmarkLoad500Samples(b *testing.B) {
	files := samples500()
	for b.Loop() {
		if family, err := loadFiles(b, files, Options{}); err != nil || len(family.Tasks) != 500 {
			b.Fatal(err)
		}
	}
}

func FuzzDataset(f *testing.F) {
	f.Add(".csv", "id,q\n1,\"a\n")
	f.Add(".jsonl", "{\"id\":1,\"q\":[1,{}]}\n{")
	f.Add(".json", "[{\"q\":1},{}]")
	f.Add(".yaml", "- q: &a [*a]")
	f.Fuzz(func(t *testing.T, ending, content string) {
		if len(ending) > 6 || strings.ContainsAny(ending, "/\x00") {
			return
		}
		path := filepath.Join(t.TempDir(), "d"+ending)
		if os.WriteFile(path, []byte(content), 0o600) != nil {
			return
		}
		last := 0
		reader := &datasetReader{
			name:   "d",
			bounds: datasetBounds{samples: 100, sample: 1 << 16, all: 1 << 20},
			header: func([]string) error { return nil },
			row: func(row datasetRow) error {
				if row.line < last || row.columns == nil {
					t.Errorf("line %d after line %d", row.line, last)
				}
				last = row.line
				return nil
			},
		}
		_ = reader.read(path)
	})
}
