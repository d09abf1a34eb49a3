package ledger_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/ledger"
)

func passed(task string, run int) *ledger.Record {
	return &ledger.Record{
		TaskID:   task,
		RunIndex: run,
		Arm:      "before",
		Attempt:  1,
		Verdict:  ledger.Pass,
		Grade:    &ledger.Grade{Verdict: ledger.Pass, GatesPass: true, Healthy: true},
		Final:    true,
	}
}

// A writer seals each record with the hash of the one before it; a reader checks the chain.
func Example() {
	dir, err := os.MkdirTemp("", "ledger")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "results.jsonl")

	writer, err := ledger.Open(path, ledger.Config{Experiment: "demo"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for run := range 2 {
		if err := writer.Append(passed("fix-a-bug", run)); err != nil {
			fmt.Println(err)
		}
	}
	if err := writer.Close(); err != nil {
		fmt.Println(err)
	}

	contents, err := ledger.ReadFile(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, record := range contents.Records {
		fmt.Println(record.Key(), record.Verdict)
	}
	fmt.Println("damage:", contents.Damage(path))
	// Output:
	// fix-a-bug/before/0#1 pass
	// fix-a-bug/before/1#1 pass
	// damage: <nil>
}

// A line that was changed no longer fits its hash.
func ExampleScan() {
	var file bytes.Buffer
	record := passed("fix-a-bug", 0)
	record.Experiment = "demo"
	if err := ledger.Write(&file, []ledger.Record{*record}); err != nil {
		fmt.Println(err)
		return
	}
	changed := bytes.Replace(file.Bytes(), []byte(`"turns":0`), []byte(`"turns":9`), 1)
	contents, err := ledger.Scan(bytes.NewReader(changed), func(*ledger.Record) error { return nil })
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, problem := range contents.Problems {
		fmt.Println(problem)
	}
	// Output: line 1: changed: the content does not match the hash
}
