package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/cli/console"
)

// insides is what a message must not have: words of the system and of the standard library.
var insides = regexp.MustCompile(`\b(?:l?stat|open|fork/exec) /|strconv\.|invalid character|` +
	`(?:^|[^.\w])(?:json|yaml|nats): |unmarshal|goroutine|%!|error parsing regexp|SyntaxError|dial tcp|listen tcp|` +
	`lookup |shorthand|looking for beginning|\(\?im\)|file exists`)

// folded is where a line was broken. A command that people copy is not.
var (
	folded = regexp.MustCompile(`\n +`)
	toCopy = regexp.MustCompile(`^ *(fit|fit-[a-z]+|subq|npm) `)
)

// saidTwice is a part of a message, up to a colon, that stands there twice in a row.
func saidTwice(message string) string {
	parts := strings.Split(message, ": ")
	for i, part := range parts[1:] {
		if strings.HasSuffix(" "+parts[i], " "+part) && strings.ContainsAny(part, "abcdefghijklmnopqrstuvwxyz") {
			return part
		}
	}
	return ""
}

// TestMistakesHaveAWayOut makes the mistakes of a first day. Each message has the given words,
// which say what to do, and the name by which the program was called.
func TestMistakesHaveAWayOut(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"family/tasks/one/task.yaml":           "timeout: 5\n",
		"family/tasks/one/agent.task.md":       "Do it.\n",
		"quick/tasks/one/task.yaml":            "timeouts: {agent: soon}\n",
		"quick/tasks/one/agent.task.md":        "Do it.\n",
		"bad.json":                             "{\"turns\": [}",
		"bad.yaml":                             "id: [",
		"empty":                                "",
		"words.txt":                            "hello\n",
		"runs.csv":                             "task,arm,pass\nx,a,1\n",
		"words.json":                           "\"hello\"\n",
		"tagged/tasks/one/task.yaml":           "tags: [quick]\n",
		"tagged/tasks/one/hooks/invariants.sh": "#!/bin/sh\n",
		"tagged/tasks/one/agent.task.md":       "Do it.\n",
		"table.csv":                            "a,b\n1\n",
		"trace.ndjson":                         `{"source":"agent","seq":0,"event":{"type":"text","text":"Hi."}}` + "\n",
		"runs/runs/one/a/0/1/agent.ndjson":     `{"source":"agent","seq":0,"event":{"type":"text"}}` + "\n",
		"named/family.yaml":                    "name: named\n",
		"named/tasks/one/agent.task.md":        "Do it.\n",
		"named/tasks/one/hooks/invariants.sh":  "#!/bin/sh\n",
		"results/results.jsonl":                "",
		"results/runs/one/.keep":               "",
		"strange/results.jsonl":                "",
		"strange/plan.json":                    "{\"plan\":5}",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
				t.Fatal(err)
			}
		})
	}
	for call, want := range map[string]string{
		// commands
		"fit benchmrk":         `did you mean "benchmark"?`,
		"fit-benchmark rport":  `"report"`,
		"subq eval rport":      `did you mean "report"?`,
		"subq evl":             `did you mean "eval"?`,
		"fit-trace ovrview":    `did you mean "overview"?`,
		"fit-harness superviz": `did you mean "supervise"?`,
		"fit-benchmark":        "needs a command: clean, compare",
		"fit help benchmrk":    "benchmrk",
		"fit completion tcsh":  "bash|fish|zsh",
		// flags
		"fit-benchmark run --familly x":        "did you mean --family?",
		"fit-benchmark run --modell x":         "did you mean --model?",
		"fit-benchmark run --concurency 2":     "did you mean --concurrency?",
		"fit-benchmark compare --markdown":     "fit-benchmark compare --help",
		"fit-harness run --task-txt x":         "did you mean --task-text?",
		"fit versus run --judje off":           "did you mean --judge?",
		"fit-trace search --contxt 2 a b":      "did you mean --context?",
		"fit demo --sam":                       "did you mean --same?",
		"fit demo --dir x":                     "unknown flag: --dir (see",
		"fit-harness run --task x":             "did you mean --task-text?",
		"fit-benchmark run --family":           "needs an argument",
		"fit-benchmark run --runs x":           "whole number",
		"fit-benchmark run --runs 0":           "at least 1",
		"fit-benchmark run --runs 1.5":         "whole number",
		"fit-benchmark run --isolation bwap":   "auto, bwrap, podman, docker, none",
		"fit-benchmark run --max-cost-usd abc": "0.50",
		"fit-benchmark run --min-pass-rate 2":  "from 0 to 1",
		"fit-benchmark run --timeout soon":     "--timeout",
		"fit-benchmark run --network lan":      "model, host, none",
		"fit-benchmark run --context all":      "project, none",
		"fit-benchmark run --gateway maybe":    "on, off",
		"fit-benchmark report --format pdf .":  "json",
		"fit-benchmark plan --effect 0":        "between 0 and 1",
		"fit-trace overview --format xml a":    "ndjson",
		// agents and arms
		"fit-benchmark run --family family --agent claude":             "did you mean claude-code?",
		"fit-harness run --agent cladue-code --task-text x":            "did you mean claude-code?",
		"fit-harness run --agent Codex --task-text x":                  "did you mean codex?",
		"fit agents show gemni":                                        "did you mean gemini?",
		"fit-benchmark run --family family --arm a=agnt:codex":         "did you mean agent?",
		"fit-benchmark run --family family --arm a=agent:codex,modl:x": "did you mean model?",
		// arguments
		"fit-harness run fix-it":                       `--task-text "fix-it"`,
		"fit-harness judge check-it":                   `--task-text "check-it"`,
		"fit-harness run":                              "--task-file, --task-text",
		"fit-benchmark show results":                   "takes DIR TASK/ARM/RUN",
		"fit-benchmark show results a/b/0":             "results has no runs",
		"fit doctor x":                                 "takes no arguments",
		"fit-benchmark report results:a":               "use results",
		"fit-benchmark ctl results puase":              "pause",
		"fit-benchmark grade results":                  "--family is required",
		"fit-benchmark merge results --output":         "needs an argument",
		"fit versus run task.yaml":                     "--agents",
		"fit versus run bad.yaml --agents builtin":     "bad.yaml:",
		"fit versus run nowhere.yaml --agents builtin": "nowhere.yaml: no such file",
		// files
		"fit-benchmark report nowhere":          "nowhere: no such file",
		"fit-benchmark report words.txt":        "words.txt",
		"fit-benchmark report empty":            "empty is empty: it holds no results",
		"fit-benchmark compare results":         "results",
		"fit-benchmark run --family nowhere":    "nowhere: no such file",
		"fit-benchmark lint --family words.txt": "words.txt",
		"fit-benchmark lint --family family":    "did you mean timeouts?",
		"fit-benchmark lint --family quick":     "timeouts.agent",
		"fit-benchmark lint nowhere":            "nowhere: no such file",
		"fit-benchmark import words.txt out":    ".csv, .jsonl, .json or .yaml",
		"fit-benchmark list":                    "--family FAMILY, or a run directory",
		"fit-trace overview nowhere":            "nowhere: no such file",
		"fit-trace overview runs":               "such as runs/runs/one/a/0/1/agent.ndjson",
		"fit-trace overview words.txt":          "words.txt",
		"fit-trace search":                      "FILE PATTERN",
		"fit-harness resume nowhere":            "nowhere: no such file",
		"fit-harness resume words.txt":          "words.txt",
		"fit-harness run --task-file nowhere":   "nowhere: no such file",
		"fit model serve --script nowhere":      "nowhere: no such file",
		"fit model serve --script bad.json":     "bad.json: line 1",
		"fit session show nowhere":              "no file nowhere",
		"fit session show words.txt":            "words.txt",
		"fit view nowhere":                      "nowhere: no such file",
		"fit stats paired nowhere":              "nowhere: no such file",
		"fit stats paired table.csv":            "table.csv",
		"fit fleet status":                      "FIT_FLEET",
		"fit-selfedit x/y":                      "settings.json",
		"fit-benchmark export results":          "results",
		// further commands
		"fit run":                                              `"fit benchmark run"`,
		"fit compare a b":                                      `"fit benchmark compare"`,
		"fit overview trace.ndjson":                            `"fit trace overview"`,
		"fit trace.ndjson":                                     "name what to do first",
		"fit-trace trace.ndjson":                               "name what to do first",
		"fit-trace --overview trace.ndjson":                    "overview is a command, not a flag",
		"fit benchmark --family x":                             "needs a command: clean, compare",
		"fit-benchmark run -n 3":                               "did you mean --runs?",
		"fit-benchmark run --repeat 3":                         "did you mean --runs?",
		"fit-benchmark run --budget 3":                         "did you mean --max-cost-usd?",
		"fit-benchmark run --skill x":                          "did you mean --skills-from?",
		"fit-harness run --prompt x":                           "did you mean --task-text?",
		"fit view --addr 1:2":                                  "did you mean --listen?",
		"fit view --port 8080":                                 "did you mean --listen?",
		"fit gateway serve --port 99":                          "did you mean --addr?",
		"fit view --listen 99":                                 "--listen 99: must be HOST:PORT, e.g. 127.0.0.1:8080",
		"fit model serve":                                      "--script FILE is required",
		"fit model serve --script words.txt":                   "words.txt: line 1",
		"fit install-names nowhere/x":                          "create it first: mkdir -p nowhere/x",
		"fit-trace sql trace.ndjson select":                    "sql: incomplete input; the tables are turns, tool_calls",
		"fit-trace sql trace.ndjson selct":                     "only queries are allowed (select, with",
		"fit-trace entry trace.ndjson 99":                      "has no entry 99",
		"fit-trace entry trace.ndjson x":                       "INDEX must be a whole number",
		"fit-trace search trace.ndjson (":                      "missing closing )",
		"fit-trace export trace.ndjson":                        "otlp, markdown, document, html",
		"fit-trace assert x trace.ndjson":                      "--grep, --query, --exists and --cites-job",
		"fit-trace align trace.ndjson":                         "takes FILE-A FILE-B",
		"fit-trace runs":                                       "--repo owner/name",
		"fit-trace errors --file nope/*.ndjson":                "no files match nope/*.ndjson",
		"fit fleet run":                                        "--family is required",
		"fit fleet status https://example.com":                 "use the file that fit fleet serve",
		"fit fleet serve --listen 99":                          "host:port",
		"fit fleet cap anthropic many":                         "a whole number of at least 1, or off",
		"fit fleet key make x":                                 "the commands are add, list, revoke",
		"fit fleet simulate nowhere":                           "nowhere/plan.json: no such file",
		"fit stats power --effect 2":                           "above 0 and at most 1",
		"fit stats power --effect 0":                           "a difference that is not there",
		"fit stats power":                                      "--effect, --tasks or --budget",
		"fit stats proportion 3":                               "numbers go into flags",
		"fit stats judge --k 5":                                "--n, --tp, --m1, --tn, --m0",
		"fit stats agree words.txt":                            "at least 2",
		"fit stats paired empty":                               "empty: no rows",
		"fit session prompts a b c":                            "one file, or two to compare",
		"fit agents try nobody":                                "known are claude-code, codex",
		"fit selfedit a b":                                     "expected one path, got 2",
		"fit selfedit --expect-sha256 xyz a":                   "64 hexadecimal digits",
		"fit-harness run --task-text x --cwd nowhere":          "--cwd nowhere is not a directory",
		"fit-harness run --task-text x --task-file empty":      "one of --task-file, --task-text",
		"fit-harness run --task-text x --max-cost-usd -1":      "e.g. 0.50",
		"fit-harness run --task-text x --model-url ftp://":     "http:// or https://",
		"fit-harness resume runs":                              "name the trace file of a session",
		"fit-harness callback":                                 "--trace-file",
		"fit-harness scan-logs":                                "--secret-env NAME",
		"fit-benchmark run --family family --shard 3/2":        "from 1 to the second",
		"fit-benchmark run --family family --arm a=b":          "does not begin with one of the keys agent",
		"fit-benchmark run --family family --arms bad.yaml":    "bad.yaml:2:1",
		"fit-benchmark compare results --fail-on worse":        "regressed, not-proven",
		"fit-benchmark compare results --alpha 5":              "above 0 and below 1",
		"fit-benchmark init --runner ruby x":                   "shell, node, python, go",
		"fit-benchmark init words.txt":                         "words.txt: not a directory",
		"fit-benchmark show results x":                         "results has no runs",
		"fit-benchmark clean nowhere":                          "not a run directory",
		"fit-benchmark ctl results concurrency x":              "at least 1",
		"fit-benchmark grade":                                  "a run directory, the directory of an attempt",
		"fit versus judge results":                             "--panel is required",
		"fit versus judge results --dims x":                    "only correctness, verification, completeness",
		"fit versus compare results":                           "takes A B…",
		"fit versus audit results --clear x":                   "--flag, --by and --reason",
		"fit-benchmark export strange":                         "strange has no run 0",
		"fit-harness run --task-text x --mcp-config words.txt": "it is not JSON: unexpected 'h'",
		"fit versus schema Nothing":                            "EvalReport",
		// words and orders of other programs
		"fit ls":                                           `"fit benchmark list"`,
		"fit new x":                                        `"fit benchmark init"`,
		"fit-benchmark completion bash":                    `did you mean "fit completion"?`,
		"fit-trace doctor":                                 `did you mean "fit doctor"?`,
		"fit versus run family --agents builtin":           "a directory, not a task file; fit benchmark run --family",
		"fit-benchmark import-results results out":         "results is a run directory already",
		"fit-harness run --task-text x --model-url a.b:80": "--model-url or FIT_MODEL_URL",
		"fit ui":                                               `did you mean "view"?`,
		"fit-trace grep x trace.ndjson":                        `did you mean "search"?`,
		"fit-trace cat trace.ndjson":                           `did you mean "timeline"?`,
		"fit-trace show trace.ndjson":                          `did you mean "overview"?`,
		"fit-benchmark run family":                             `name the family with --family "family"`,
		"fit-benchmark run --epochs 3":                         "did you mean --runs?",
		"fit-benchmark run --filter x":                         "did you mean --task?",
		"fit-benchmark run -j 4":                               "unknown flag: -j; did you mean --concurrency?",
		"fit-benchmark run -q":                                 "unknown flag: -q",
		"fit-benchmark run --temperature 0":                    "--arm NAME=agent:AGENT,temperature:VALUE",
		"fit-trace export trace.ndjson --output x":             "add > FILE",
		"fit-trace overview trace.ndjson -o x":                 "add > FILE",
		"fit-trace entry trace.ndjson -1":                      "follow --",
		"fit-trace batch trace.ndjson 3 1":                     "FROM 3 is not before TO 1",
		"fit-trace assert trace.ndjson --grep x":               "name the test and the file",
		"fit-trace assert x trace.ndjson --query [":            "Incomplete expression; it is JMESPath",
		"fit-trace call trace.ndjson 0":                        "no model calls are recorded",
		"fit-trace search trace.ndjson [":                      "missing closing ]",
		"fit-trace commands --match ( trace.ndjson":            "missing closing )",
		"fit-trace overview runs/runs/one/a/0":                 "such as runs/runs/one/a/0/1/agent.ndjson",
		"fit-trace overview runs/runs/one":                     "such as runs/runs/one/a/0/1/agent.ndjson",
		"fit-trace overview family":                            "name a file",
		"fit view words.txt":                                   "neither a run directory nor a trace",
		"fit stats paired family":                              "name a file of rows",
		"fit stats power --effect 10%":                         "must be a number, e.g. 0.05",
		"fit-benchmark run --family family/tasks/one":          "name the family, family, and choose the task with --task one",
		"fit-benchmark run --family family/tasks":              "name the family: family",
		"fit-benchmark run --family named/family.yaml":         "name its directory: named",
		"fit-benchmark run --family named --output named":      "named has a family.yaml, so it holds tasks",
		"fit-benchmark run --family named --isolation docker":  "--isolation docker",
		"fit-benchmark run --family named --output=":           "--output must name a directory",
		"fit-benchmark run --family named --arm a=builtin":     "an agent is named with a=agent:builtin",
		"fit-benchmark run --family named --arm agent:builtin": "e.g. before=agent:AGENT",
		"fit-benchmark run --family x --agent builtin,codex":   "name one, and compare several with --arm",
		"fit-benchmark run --family x --agent ./agent.sh":      "did you mean cmd:./agent.sh?",
		"fit-benchmark run --family named --agent acp:nothing": "is not installed; put nothing into PATH",
		"fit-benchmark run --family named --skills-from no":    "--skills-from no: no such file",
		"fit-benchmark run --family named --model-url http://127.0.0.1:1 --agent builtin --isolation none": "cannot be " +
			"reached: connection refused",
		"fit-benchmark report results/results.jsonl":         "is a file of a run directory: use results",
		"fit-benchmark report results/runs":                  "did you mean results?",
		"fit-benchmark report results/runs/one":              "did you mean results?",
		"fit-benchmark report results:b":                     "use results",
		"fit-benchmark compare results/before results/after": "did you mean results:before?",
		"fit-benchmark compare":                              "takes A [B]: run directories, or DIR:ARM",
		"fit-benchmark compare results --non-inferior 5%":    "must be a number, e.g. 0.05",
		"fit-benchmark show runs/runs/one/a/0":               "fit-benchmark show runs one/a/0",
		"fit-benchmark show runs/runs/one/a/0/1/x":           "fit-benchmark show runs one/a/0",
		"fit versus show runs/runs/one/a/0/1":                "fit versus show runs one/a/0",
		// sixty more: what a session of a new user made
		"fit-benchmark run --family named --agent builtin --tag x":  "no selected task has it; there are no tags",
		"fit-benchmark run --family tagged --agent builtin --tag x": "no selected task has it; there are quick",
		"fit-benchmark run --family named --output words.txt":       "words.txt is a file; choose another --output",
		"fit-benchmark run --family named --replay nowhere":         "--replay must name a run directory",
		"fit-benchmark run --family named --metrics nowhere/x":      "there is no directory nowhere",
		"fit-benchmark run --family strange":                        "strange is a run directory, not a family",
		"fit-benchmark run --family named --allow nothing":          "same, drift, historical, unsigned",
		"fit-benchmark run --family named --agents builtin,codex":   "did you mean --agent?",
		"fit-benchmark run -f named":                                "did you mean --family?",
		"fit-benchmark run --family named --judge-votes 2":          "use an odd number",
		"fit-benchmark run --family named --stop-early":             "exactly two arms",
		"fit-benchmark run --family named --isolation podman":       "add image: or dockerfile:",
		"fit-benchmark run --family named --faults words.txt":       "words.txt:1:1: must be a mapping",
		"fit-benchmark run --family named --limit 0":                "at least 1",
		"fit-benchmark run --family named --seed x":                 "whole number",
		"fit-benchmark run --family named --measure speed":          "pass, score",
		"fit-benchmark run --family named --margin 5":               "at least 0 and below 1",
		"fit-benchmark run --family named --arm a=agent:builtin --arm a=agent:codex": `two arms are called "a"; ` +
			"give each a name",
		"fit-benchmark run --family named --arm a=agent:builtin,tools:Rd":      "it has Bash, Read, Write",
		"fit-benchmark run --family named --arm a=agent:builtin,env:X":         "env:NAME=value",
		"fit-benchmark run --family named --arm a=agent:builtin,maxTurns:many": "whole number",
		"fit-benchmark compare results --min-pass-rate 1":                      "fit-benchmark report, fit-benchmark run have it",
		"fit-benchmark compare results --format html --output x":               "add > FILE",
		"fit-benchmark compare words.txt --columns task=a,pass=b":              "there are hello",
		"fit-benchmark report named":                                           "named is a family of tasks",
		"fit-benchmark show results one/a/1 two":                               "takes DIR TASK/ARM/RUN",
		"fit-benchmark grade --family named --predictions words.txt":           "instance_id, model_name_or_path",
		"fit-benchmark grade --family named strange":                           "strange",
		"fit-benchmark lint --family named --task x":                           "there are one",
		"fit-benchmark clean named":                                            "it has no plan.json",
		"fit-benchmark init named":                                             "named is not empty; name a new directory",
		"fit-benchmark import words.json out":                                  "must be a JSON list of objects",
		"fit-benchmark ctl results cancel":                                     "name the run: cancel TASK/ARM/RUN",
		"fit-benchmark ctl results budget x":                                   "0 is unlimited",
		"fit help benchmark rnu":                                               `did you mean "run"?`,
		"fit evaluate":                                                         `"fit benchmark run"`,
		"fit session convert trace.ndjson":                                     `did you mean "export"?`,
		"fit session show a b":                                                 "name one file",
		"fit session export trace.ndjson --to x":                               "use --to atif",
		"fit versus list":                                                      "there is no directory eval",
		"fit versus report nowhere":                                            "nowhere: no such file or directory",
		"fit versus run words.txt --agents builtin":                            "words.txt:1:1",
		"fit versus calibrate":                                                 "export, import, label",
		"fit-trace assert x trace.ndjson --grep (":                             "missing closing )",
		"fit-trace assert x y trace.ndjson --exists":                           "it takes TEST FILE",
		"fit-trace overview strange/plan.json":                                 "fit benchmark report strange",
		"fit-trace tail trace.ndjson -n 3":                                     "did you mean --lines?",
		"fit-trace filter trace.ndjson --role nobody":                          "system, assistant, user",
		"fit-trace sql trace.ndjson ":                                          "takes FILE... QUERY",
		"fit-trace split trace.ndjson":                                         "run, supervise, facilitate, discuss",
		"fit-harness output":                                                   "standard input holds no events",
		"fit-harness keys":                                                     "the commands are callback",
		"fit-harness facilitate --task-text x":                                 "--agent-profiles NAME,NAME",
		"fit-harness run --task-text x --allowed-tools Bsh --agent builtin":    "it has Bash, Read, Write",
		"fit view --listen 256.1.1.1:80":                                       "there is no host 256.1.1.1",
		"fit model serve x.json":                                               "--script FILE",
		"fit model serve --script empty":                                       "ends too early",
		"fit stats passk --k 1":                                                "needs --n, --c",
		"fit stats proportion --k 5 --n 3":                                     "more than n",
		"fit stats paired bad.json":                                            "bad.json",
		"fit skill lint nowhere":                                               "nowhere: no such file",
		"fit agents list x":                                                    "takes no arguments",
		"fit completion powershell":                                            "bash|fish|zsh",
		"fit install-names words.txt":                                          "words.txt is a file",
		"fit fleet status nats://127.0.0.1:1":                                  "is fit fleet serve running there?",
		"fit fleet work --fleet words.txt":                                     "words.txt holds no URL of a fleet",
		"fit fleet key add x boss":                                             "must be coordinator, worker or observer",
		"fit-benchmark plan family":                                            "fit-benchmark run --family family measures",
		"fit-trace":                                                            "fit-trace: it needs a command: align",
		"fit fleet":                                                            "fit: fleet needs a command: ",
		"fit-trace entry trace.ndjson":                                         "fit-trace: entry takes FILE INDEX, but got",
		"fit completion":                                                       "fit: completion takes bash|fish|zsh, but got nothing",
		"fit-benchmark run --family named --agent builtin --runs 1000000000":   "× 1000000000 are more than 1000000 cells",
		"fit-benchmark show one/b/7 results":                                   "results has no runs",
		"fit-benchmark plan --effect 10":                                       "0.1 is 10 percentage points",
		"fit-benchmark run --family named --agent builtin --effect 10":         "--effect 10: must be a fraction",
		"fit stats paired runs.csv":                                            "fit-benchmark compare reads it",
		"fit trace help sqll":                                                  "did you mean",
		"fit-benchmark compare results a b":                                    "two arms of a run directory are results:a results:b",
		"fit-benchmark run --family named --arms a=agent:builtin":              "an arm is written as --arm a=agent:builtin",
		"fit view results:a":                                                   "the pages show every arm: use results",
		"fit demo --runs 0":                                                    "at least 1",
	} {
		t.Run(call, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			con := &console.Console{
				Stdin:   strings.NewReader(""),
				Stdout:  &stdout,
				Stderr:  &stderr,
				Dir:     dir,
				Environ: []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "COLUMNS=80"},
			}
			args := strings.Fields(call)
			code := Run(t.Context(), args, con)
			said := strings.ReplaceAll(stderr.String(), dir+string(filepath.Separator), "")
			for line := range strings.Lines(said) {
				if utf8.RuneCountInString(line) > 81 && !toCopy.MatchString(line) {
					t.Errorf("a line is wider than 80 columns: %q", line)
				}
			}
			if strings.HasPrefix(said, args[0]+":\n") {
				t.Errorf("the first line says nothing: %q", said)
			}
			said = folded.ReplaceAllString(said, " ")
			switch {
			case code == console.ExitGood:
				t.Errorf("it succeeds: %s%s", &stdout, said)
			case !strings.Contains(said, want):
				t.Errorf("it says %q, not %q", said, want)
			case !strings.Contains("\n"+said, "\n"+args[0]+": "):
				t.Errorf("no line of %q begins with the name of the program", said)
			case saidTwice(said) != "":
				t.Errorf("it says %q twice: %q", saidTwice(said), said)
			case insides.MatchString(said + stdout.String()):
				t.Errorf("it shows its insides: %q", said)
			}
		})
	}
}
