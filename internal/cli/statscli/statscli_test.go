package statscli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
)

// terminal runs commands in memory, in a directory with the files of a test.
type terminal struct {
	t     *testing.T
	dir   string
	stdin string
}

func newSession(t *testing.T, files map[string]string) *terminal {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &terminal{t: t, dir: dir}
}

// run executes `fit stats <arguments>` and returns what it printed, its error and its exit code.
func (s *terminal) run(arguments ...string) (stdout string, code int, err error) {
	s.t.Helper()
	var out, errs bytes.Buffer
	con := &console.Console{Stdin: strings.NewReader(s.stdin), Stdout: &out, Stderr: &errs, Dir: s.dir}
	root := &cobra.Command{Use: "fit", SilenceErrors: true, SilenceUsage: true}
	root.SetOut(&out)
	root.SetErr(&errs)
	root.AddCommand(New(con, nil))
	root.SetArgs(append([]string{"stats"}, arguments...))
	err = root.Execute()
	return out.String(), console.Code(err), err
}

// json runs a command that must succeed with --format json and returns its object.
func (s *terminal) json(arguments ...string) map[string]any {
	s.t.Helper()
	out, code, err := s.run(append(arguments, "--format", "json")...)
	if code != console.ExitGood {
		s.t.Fatalf("fit stats %s: exit %d, %v", strings.Join(arguments, " "), code, err)
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(out), &object); err != nil {
		s.t.Fatalf("fit stats %s printed no JSON: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return object
}

// Names in a table are a stranger's.
func TestNothingOfATableReachesTheTerminalAsItIs(t *testing.T) {
	s := newSession(t, map[string]string{
		"table.csv": "task,new\x1b[31m,old\u202e\nx\x1b[0m,1,0\ny\u200b,0,1\nz\u009b,1,1\n",
	})
	for _, arguments := range [][]string{
		{"paired", "table.csv"},
		{"paired", "table.csv", "--format", "json"},
		{"agree", "table.csv", "--names", "no"},
		{"agree", "table.csv", "--names", "no", "--format", "json"},
	} {
		out, code, err := s.run(arguments...)
		if code != console.ExitGood || strings.ContainsAny(out, "\x1b\u202e\u200b\u009b") {
			t.Errorf("%s: exit %d, %v\n%q", arguments, code, err, out)
		}
	}
}

func wantFields(t *testing.T, got map[string]any, want map[string]any) {
	t.Helper()
	for name, value := range want {
		have, present := got[name]
		switch expected := value.(type) {
		case float64:
			if number, ok := have.(float64); !ok || math.Abs(number-expected) > 1e-6 {
				t.Errorf("%s = %v, want %v", name, have, expected)
			}
		default:
			if !present || have != value {
				t.Errorf("%s = %v, want %v", name, have, value)
			}
		}
	}
}

const sixTasks = `task,new,old
t1,1/1/1,1/0/1
t2,1/1/0,1/0/0
t3,1/0/1,0/0/0
t4,0/0/0,0/0/0
t5,1/1/1,1/1/1
t6,1/0/0,0/0/1
`

func TestNumbersAsJSON(t *testing.T) {
	s := newSession(t, map[string]string{
		"six.csv":     sixTasks,
		"ratings.csv": "human,judge\npass,pass\npass,pass\npass,fail\nfail,fail\nfail,fail\nfail,pass\n",
		"fleiss.txt":  "3 0\n3 0\n2 1\n0 3\n1 2\n3 0\n0 3\n3 0\n2 1\n0 3\n",
	})
	for name, row := range map[string]struct {
		arguments []string
		want      map[string]any
	}{
		"wilson by default": {
			[]string{"proportion", "--k", "21", "--n", "30"},
			map[string]any{"est": .7, "lo": .521242, "hi": .833353, "method": "wilson"},
		},
		"clopper-pearson": {
			[]string{"proportion", "--k", "45", "--n", "50", "--method", "clopper-pearson"},
			map[string]any{"lo": .781865, "hi": .966725, "method": "clopper-pearson"},
		},
		"jeffreys": {
			[]string{"proportion", "--k", "0", "--n", "3", "--method", "jeffreys"},
			map[string]any{"lo": .000151, "hi": .535583},
		},
		"difference of two rates": { // table II of Newcombe (1998), method 10
			[]string{"difference", "--k", "56", "--n", "70", "--base-k", "48", "--base-n", "80"},
			map[string]any{"est": .2, "lo": .052431, "hi": .333873, "method": "newcombe-10-unpaired"},
		},
		"pass@k": {
			[]string{"passk", "--n", "10", "--c", "3", "--k", "5"},
			map[string]any{"passAtK": .9166666667, "passHatK": 0.0, "est": .9166666667, "k": 5.0},
		},
		"mcnemar": {
			[]string{"mcnemar", "--b", "9", "--c", "2"},
			map[string]any{"p": .0654297, "pMid": .0385742, "eValue": 2.58984375},
		},
		"mcnemar beyond doubt": {
			[]string{"mcnemar", "--b", "3000", "--c", "0"},
			map[string]any{"p": 0.0, "eValue": math.MaxFloat64},
		},
		"mcnemar with n": {
			[]string{"mcnemar", "--b", "9", "--c", "2", "--n", "50"},
			map[string]any{"est": .14, "lo": .003734, "hi": .265496},
		},
		"paired": {
			[]string{"paired", "six.csv"},
			map[string]any{
				"est": .2222222, "lo": -.063398, "hi": .507842, "p": .25, "method": "signflip",
				"intervalMethod": "t", "claim": "insufficient", "nTasks": 6.0, "nRuns": 36.0,
			},
		},
		"paired turned": {
			[]string{"paired", "six.csv", "--baseline", "first"},
			map[string]any{"est": -.2222222, "lo": -.507842, "hi": .063398},
		},
		"detectable effect": {
			[]string{"power", "--tasks", "20", "--runs", "3"},
			map[string]any{"mde": .3010808, "tasksNeeded": nil},
		},
		"tasks needed": {
			[]string{"power", "--effect", "0.1", "--runs", "3"},
			map[string]any{"tasksNeeded": 150.0},
		},
		"out of reach": {
			[]string{"power", "--effect", "0.1", "--runs", "3", "--tasks", "20"},
			map[string]any{"runsNeeded": nil},
		},
		"judge": {
			[]string{"judge", "--k", "39", "--n", "60", "--tp", "36", "--m1", "40", "--tn", "34", "--m0", "40"},
			map[string]any{
				"est": .6666667, "lo": .472681, "hi": .863786, "raw": .6666667, "status": "ok",
				"observedRate": .65, "correctedRate": .6666667, "tpr": .9, "tnr": .85, "ci95Low": .472681,
				"ci95High": .863786,
			},
		},
		"judge before clipping": {
			[]string{"judge", "--k", "1", "--n", "30", "--tp", "18", "--m1", "20", "--tn", "17", "--m0", "20"},
			map[string]any{"est": 0.0, "raw": -.1555556, "lo": 0.0, "hi": .099476},
		},
		"weak judge": {[]string{
			"judge", "--k", "39", "--n", "60", "--tp", "26", "--m1", "40", "--tn", "20",
			"--m0", "40",
		}, map[string]any{"status": "judge-uninformative"}},
		"no labels": {[]string{
			"judge", "--k", "39", "--n", "60", "--tp", "0", "--m1", "0", "--tn", "0", "--m0",
			"0",
		}, map[string]any{"status": "uncalibrated", "est": nil, "observedRate": .65}},
		"agreement": {
			[]string{"agree", "ratings.csv"},
			map[string]any{
				"items": 6.0, "raters": 2.0, "kappa": 1.0 / 3, "observed": 2.0 / 3, "tpr": 2.0 / 3,
				"tnr": 2.0 / 3,
			},
		},
		"counted ratings": {
			[]string{"agree", "fleiss.txt", "--counts"},
			map[string]any{"fleiss": .592760, "observed": .8, "expected": .508889, "kappa": nil},
		},
	} {
		t.Run(name, func(t *testing.T) { s.t = t; wantFields(t, s.json(row.arguments...), row.want) })
	}
}

func TestTextIsForPeople(t *testing.T) {
	s := newSession(t, map[string]string{"six.csv": sixTasks, "ratings.csv": "a,b\n1,1\n0,1\n0,0\n"})
	for _, row := range []struct {
		says      string
		arguments []string
	}{
		{
			"13 of 37 = 35.1%, 95% CI 21.8% to 51.2% (wilson)",
			[]string{"proportion", "--k", "13", "--n", "37"},
		},
		{
			"3 of 3 against 1 of 3 = +66.7 points, 95% CI -5.9 to +93.9 points",
			[]string{"difference", "--k", "3", "--n", "3", "--base-k", "1", "--base-n", "3"},
		},
		{"99% CI", []string{"proportion", "--k", "13", "--n", "37", "--level", "0.99"}},
		{"pass@5  0.916667", []string{"passk", "--n", "10", "--c", "3", "--k", "1,5"}},
		{"k > n", []string{"passk", "--n", "10", "--c", "3", "--k", "1,11"}},
		{"note: k = 6 is more than half of n = 10", []string{"passk", "--n", "10", "--c", "3", "--k", "6"}},
		{"p = 0.065430, mid-p = 0.038574", []string{"mcnemar", "--b", "9", "--c", "2"}},
		{
			"difference +14.0 points, 95% CI +0.4 to +26.5 points",
			[]string{"mcnemar", "--b", "9", "--c", "2", "--n", "50"},
		},
		{
			"Insufficient data, no statistical claim: 6 tasks where at least 10 are needed",
			[]string{"paired", "six.csv"},
		},
		{"new (mean 0.6111) against old (mean 0.3889): 3 won, 0 lost, 3 tied", []string{"paired", "six.csv"}},
		{"e-value", []string{"paired", "six.csv", "--sequential"}},
		{"20 tasks: minimum detectable difference 30.1 points", []string{"power", "--tasks", "20", "--runs", "3"}},
		{"a difference of 10.0 points needs 150 tasks", []string{"power", "--effect", "0.1", "--runs", "3"}},
		{"no number of runs makes 20 tasks enough", []string{"power", "--effect", "0.1", "--tasks", "20"}},
		{"cheapest: ", []string{"power", "--effect", "0.1", "--cost-per-run", "0.4"}},
		{
			"affordable: 250 tasks × 1 run per arm, cost 200.00",
			[]string{"power", "--budget", "200", "--cost-per-run", "0.4"},
		},
		{
			"corrected  66.7%, 95% CI 47.3% to 86.4% (lang-reiczigel)",
			[]string{"judge", "--k", "39", "--n", "60", "--tp", "36", "--m1", "40", "--tn", "34", "--m0", "40"},
		},
		{"judge-uninformative", []string{
			"judge", "--k", "39", "--n", "60", "--tp", "26", "--m1", "40", "--tn", "20",
			"--m0", "40",
		}},
		{"uncalibrated", []string{
			"judge", "--k", "39", "--n", "60", "--tp", "0", "--m1", "0", "--tn", "1", "--m0",
			"2",
		}},
		{"Gwet's AC1", []string{"agree", "ratings.csv"}},
		{"0.004000    0.020000    0.020000", []string{"adjust", "--p", "0.004,0.03,0.02,0.5,0.011"}},
	} {
		t.Run(row.says, func(t *testing.T) {
			out, code, err := s.run(row.arguments...)
			if code != console.ExitGood || !strings.Contains(out, row.says) {
				t.Errorf("fit stats %s: exit %d (%v)\n%s\nwant %q", strings.Join(row.arguments, " "), code, err, out,
					row.says)
			}
		})
	}
}

func TestBadNumbersGetOneLineAndExitTwo(t *testing.T) {
	s := newSession(t, map[string]string{
		"word.csv": "a,b\n1,0\n1,maybe\n", "one.csv": "1\n0\n", "empty.csv": "\n# nothing\n", "nan.csv": "1,NaN\n0,1\n",
		"ragged.csv": "1,0\n1\n",
		"zero.csv":   "1,0\n2,1\n", "quote.csv": "a,b\n\"1,0\n", "header.csv": "task,a,b\n", "count.csv": "1,2\n3,x\n",
		"single.txt": "pass\nfail\n",
		"two.csv":    "t,1,0\n", "inf.csv": "Inf,0\n1,0\n", "lonely.csv": "1,-\n-,0\n",
	})
	for _, row := range []struct {
		says      string
		arguments string
	}{
		{"k is 5, which is more than n = 3", "proportion --k 5 --n 3"},
		{"n must be at least 1, not 0", "proportion --k 0 --n 0"},
		{"k must be at least 0, not -1", "proportion --k=-1 --n 3"},
		{"not \"wald\"", "proportion --k 1 --n 3 --method wald"},
		{"needs --n", "proportion --k 1"},
		{"needs --k, --n", "proportion"},
		{"needs --base-n", "difference --k 1 --n 3 --base-k 1"},
		{"k is 4, which is more than n = 3", "difference --k 1 --n 3 --base-k 4 --base-n 3"},
		{"level must be above 0 and below 1, not NaN", "proportion --k 1 --n 3 --level NaN"},
		{"level must be above 0 and below 1, not 95", "proportion --k 1 --n 3 --level 95"},
		{"invalid argument \"abc\"", "proportion --k abc --n 3"},
		{"unknown flag", "proportion --z 1"},
		{"must be one of text, json", "proportion --k 1 --n 3 --format xml"},
		{"takes no arguments", "proportion 1 3"},
		{"no command \"magic\"", "magic"},
		{"k > n", "passk --n 3 --c 1 --k 5"},
		{"c is 4", "passk --n 3 --c 4 --k 1"},
		{"k must be at least 1, not 0", "passk --n 3 --c 1 --k 0"},
		{"discordant counts", "mcnemar --b=-1 --c 2"},
		{"more than n = 5", "mcnemar --b 3 --c 3 --n 5"},
		{"level must be above 0 and below 1, not 2", "mcnemar --b 3 --c 3 --level 2"},
		{"discordant counts", "mcnemar --b 9223372036854775807 --c 9223372036854775807"},
		{"n must be at most 9007199254740992", "proportion --k 1 --n 9223372036854775807"},
		{"no such file", "paired missing.csv"},
		{"takes one file", "paired"},
		{"line 3: \"maybe\" is not a number", "paired word.csv"},
		{"columns of outcomes", "paired one.csv"},
		{"no rows", "paired empty.csv"},
		{"task 1: value must be a finite number, not NaN", "paired nan.csv"},
		{"task 1: value must be a finite number, not +Inf", "paired inf.csv"},
		{"line 2: columns must be 2, not 1", "paired ragged.csv"},
		{"a header but no rows", "paired header.csv"},
		{"task 1: value must be a finite number above 0, not 0", "paired zero.csv --kind ratio"},
		{"needs outcomes between 0 and 1", "paired zero.csv --sequential"},
		{"task 2: value must be a number between 0 and 1 for --kind rate, not 2", "paired zero.csv --kind rate"},
		{"line 2", "paired quote.csv"},
		{"no task has runs of both arms", "paired lonely.csv"},
		{"not \"third\"", "paired two.csv --baseline third"},
		{"not \"odd\"", "paired two.csv --kind odd"},
		{"bootstrap interval needs at least 15 tasks", "paired zero.csv --kind score --interval bootstrap-bca"},
		{"alpha must be above 0 and below 1, not 2", "paired two.csv --alpha 2"},
		{"margin must be a finite number of at least 0, not -1", "paired two.csv --margin=-1"},
		{"--effect NaN: must be above 0 and at most 1", "power --effect NaN"},
		{"effect is 0", "power --effect 0"},
		{"--effect 2: must be above 0 and at most 1", "power --effect 2"},
		{"--effect -0.1: must be above 0 and at most 1", "power --effect=-0.1"},
		{"--effect +Inf: must be above 0 and at most 1", "power --effect Inf"},
		{"too small to plan for", "power --effect 1e-9"},
		{"omega2 5: must be from 0 to 1", "power --tasks 10 --omega2 5"},
		{"sigma2 0.3: must be from 0 to 0.25", "power --tasks 10 --sigma2 0.3"},
		{"sigma2 NaN: must be from 0 to 0.25", "power --tasks 10 --sigma2 NaN"},
		{"power must be above alpha (0.9), which a test reaches without any effect, not 0.01", "power --tasks 10 --power 0.01 --alpha 0.9"},
		{"--tasks 99999999999: must be from 1 to 2147483647", "power --tasks 99999999999"},
		{"--runs 99999999999: must be from 1 to 2147483647", "power --tasks 10 --runs 99999999999"},
		{"--cost-per-task needs --cost-per-run", "power --effect 0.1 --cost-per-task 3"},
		{"--max-tasks needs --cost-per-run", "power --effect 0.1 --max-tasks 3"},
		{"the largest number of tasks must be at least 0, not -5", "power --effect 0.1 --cost-per-run 1 --max-tasks=-5"},
		{"budget must be a finite number above 0, not NaN", "power --budget NaN --cost-per-run 1"},
		{"buys more tasks than", "power --budget 1e300 --cost-per-run 1e-300"},
		{"cost per run must be a finite number above 0, not -1", "power --effect 0.1 --cost-per-run=-1"},
		{"--tasks 0: must be from 1 to 2147483647", "power --tasks 0"},
		{"--runs 0: must be from 1 to 2147483647", "power --tasks 5 --runs 0"},
		{"alpha must be above 0 and below 1, not 0", "power --tasks 5 --alpha 0"},
		{"power must be above 0 and below 1, not 1", "power --tasks 5 --power 1"},
		{"omega2 -1: must be from 0 to 1", "power --tasks 5 --omega2=-1"},
		{"needs --effect, --tasks or --budget", "power"},
		{"--budget needs --cost-per-run", "power --budget 5"},
		{"20 tasks cannot show an effect of 0.01", "power --effect 0.01 --cost-per-run 1 --max-tasks 20"},
		{"tp is 41, which is more than m1 = 40", "judge --k 1 --n 2 --tp 41 --m1 40 --tn 3 --m0 4"},
		{"k is 3, which is more than n = 2", "judge --k 3 --n 2 --tp 4 --m1 4 --tn 3 --m0 4"},
		{"needs --tp, --m1, --tn, --m0", "judge --k 3 --n 2"},
		{"is not a number of raters", "agree count.csv --counts"},
		{"column(s) of ratings", "agree single.txt"},
		{"a header but no rows", "agree header.csv"},
		{"line 1: NaN is not a rating", "agree nan.csv"},
		{"line 1: Inf is not a rating", "agree inf.csv"},
		{"level must be above 0 and below 1, not 0", "agree count.csv --level 0"},
		{"--header must be yes, no or auto", "agree count.csv --header maybe"},
		{"p-value 2 must be a number between 0 and 1, not 2", "adjust --p 0.1,2"},
		{"p-value 1 must be a number between 0 and 1, not NaN", "adjust --p NaN"},
	} {
		t.Run(row.says, func(t *testing.T) {
			out, code, err := s.run(strings.Fields(row.arguments)...)
			if code != console.ExitUsage || err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("fit stats %s: exit %d, %v; want exit 2 and %q", row.arguments, code, err, row.says)
				return
			}
			if out != "" || strings.Contains(err.Error(), "\n") {
				t.Errorf("fit stats %s: printed %q and an error of several lines: %v", row.arguments, out, err)
			}
		})
	}
}

// Values that no pass rate has are scores, unless somebody insists.
func TestValuesBeyondOneAreScores(t *testing.T) {
	s := newSession(t, nil)
	s.stdin = "12.5 11\n14 15\n3 2.5\n"
	got := s.json("paired", "-")
	if sentence := got["sentence"].(string); strings.Contains(sentence, "points") ||
		!strings.Contains(sentence, "score") {
		t.Errorf("%q speaks of pass rates", sentence)
	}
}

// An experiment that could not even tell always from never shows nothing, whatever the formula
// says.
func TestPowerKnowsThatNoDifferenceExceedsOne(t *testing.T) {
	s := newSession(t, nil)
	out, _, _ := s.run("power", "--tasks", "1")
	if !strings.Contains(out, "1 task: no difference is detectable") || strings.Contains(out, "163.4 points") {
		t.Errorf("%s", out)
	}
}

func TestTablesComeInManyShapes(t *testing.T) {
	want := map[string]any{
		"est": .25, "nTasks": 4.0, "wins": 2.0, "losses": 1.0, "ties": 1.0,
		"method": "mcnemar-exact",
	}
	for name, table := range map[string]string{
		"commas":              "1,0\n1,0\n0,1\n1,1\n",
		"tabs":                "1\t0\n1\t0\n0\t1\n1\t1\n",
		"semicolons":          "1;0\n1;0\n0;1\n1;1\n",
		"spaces":              "1 0\n1   0\n0 1\n  1 1\n",
		"windows":             "\xef\xbb\xbfnew,old\r\n1,0\r\n1,0\r\n0,1\r\n1,1\r\n",
		"comments and blanks": "# results\n\n1 0\n1 0\n\n0 1\n1 1\n",
		"a header":            "new,old\n1,0\n1,0\n0,1\n1,1\n",
		"names":               "t1 1 0\nt2 1 0\nt3 0 1\nt4 1 1\n",
		"words":               "task,new,old\nt1,pass,fail\nt2,PASS,fail\nt3,fail,pass\nt4,true,yes\n",
		"quoted names":        "task,new,old\n\"a, b\",1,0\n\"c\",1,0\nd,0,1\ne,1,1\n",
		"baseline first":      "baseline,new\n0,1\n0,1\n1,0\n1,1\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, nil)
			s.stdin = table
			wantFields(t, s.json("paired", "-"), want)
		})
	}
}

func TestRowsOfOneTaskAreRuns(t *testing.T) {
	s := newSession(t, nil)
	s.stdin = "task,a,b,cluster\nt1,1,0,x\nt1,0,0,x\nt2,1,1,x\nt2,1,0,x\nt3,,1,y\nt4,1,0,y\nt4,1,1,y\n"
	wantFields(t, s.json("paired", "-"),
		map[string]any{
			"nTasks": 3.0, "nRuns": 12.0, "nClusters": 2.0, "nUnpaired": 1.0, "method": "cluster-signflip",
			"est": .5,
		})
}

// A task that one arm has no outcome for could have gone either way.
func TestATaskWithRunsOfOneArmBoundsTheClaim(t *testing.T) {
	var left, whole strings.Builder
	for i := range 12 {
		fmt.Fprintf(&left, "t%d,0,1\n", i)
		fmt.Fprintf(&whole, "t%d,0,1\n", i)
	}
	for i := range 12 {
		fmt.Fprintf(&left, "u%d,1,\n", i) // had the second failed these, both would be even
	}
	for table, want := range map[string]map[string]string{
		"task,a,b\n" + whole.String(): {"rate": "regressed", "score": "regressed"},
		"task,a,b\n" + left.String():  {"rate": "not proven", "score": "not proven"},
	} {
		for kind, claim := range want {
			s := newSession(t, nil)
			s.stdin = table
			if got := s.json("paired", "-", "--kind", kind)["claim"]; got != claim {
				t.Errorf("%s of %d rows: %v, want %s", kind, strings.Count(table, "\n"), got, claim)
			}
		}
	}
}

func TestRatiosAreRatios(t *testing.T) {
	var table strings.Builder
	for i := range 12 {
		factor := 1 + float64(i)
		table.WriteString(strings.Join([]string{format(.8 * factor * (1 + .01*float64(i%3))), format(factor)}, " ") +
			"\n")
	}
	s := newSession(t, nil)
	s.stdin = table.String()
	got := s.json("paired", "-", "--kind", "ratio", "--lower-is-better")
	if est := got["est"].(float64); est < .8 || est > .82 || got["claim"] != "improved" {
		t.Errorf("est %v, claim %v: want a ratio of about 0.81 that is an improvement\n%v", est, got["claim"],
			got["sentence"])
	}
	if hi := got["hi"].(float64); hi >= 1 || hi < .8 {
		t.Errorf("upper limit %v, want a ratio below 1", hi)
	}
}

func format(x float64) string {
	text, _ := json.Marshal(x)
	return string(text)
}

func TestRatingsComeInManyShapes(t *testing.T) {
	for name, table := range map[string]string{
		"plain":            "pass pass\npass pass\npass fail\nfail fail\nfail fail\nfail pass\n",
		"a header":         "human,judge\npass,pass\npass,pass\npass,fail\nfail,fail\nfail,fail\nfail,pass\n",
		"item names":       "item,human,judge\na,pass,pass\nb,pass,pass\nc,pass,fail\nd,fail,fail\ne,fail,fail\nf,fail,pass\n",
		"unlabelled names": "a pass pass\nb pass pass\nc pass fail\nd fail fail\ne fail fail\nf fail pass\n",
		"a missing rating": "pass pass\npass pass\npass fail\nfail fail\nfail fail\nfail pass\npass NA\n",
		"digits":           "1 1\n1 1\n1 0\n0 0\n0 0\n0 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, nil)
			s.stdin = table
			wantFields(t, s.json("agree", "-"),
				map[string]any{"raters": 2.0, "kappa": 1.0 / 3, "tpr": 2.0 / 3, "tnr": 2.0 / 3})
		})
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	s := newSession(t, nil)
	out, code, err := s.run("--help")
	if code != console.ExitGood {
		t.Fatalf("exit %d: %v", code, err)
	}
	for _, sub := range New(&console.Console{}, nil).Commands() {
		if !strings.Contains(out, sub.Name()) || sub.Example == "" || sub.Long == "" {
			t.Errorf("%s lacks an example, an explanation, or its line in the help", sub.Name())
		}
	}
	if out, code, _ := s.run(); code != console.ExitGood || !strings.Contains(out, "paired") {
		t.Errorf("without a subcommand: exit %d\n%s", code, out)
	}
}

func FuzzTables(f *testing.F) {
	for _, seed := range []string{
		sixTasks, "1,0\n", "a\tb\n1\t\n", "\"", "t 1/0/1 0\n", "1;0;1\n", "# x\n",
		"\xff\xfe,1\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, arguments := range [][]string{
			{"paired", "-", "--format", "json"},
			{"agree", "-", "--format", "json"},
			{"agree", "-", "--counts"},
		} {
			s := &terminal{t: t, stdin: string(data)}
			out, code, err := s.run(arguments...)
			if code != console.ExitGood && code != console.ExitUsage {
				t.Fatalf("exit %d: %v", code, err)
			}
			if code == console.ExitGood && arguments[len(arguments)-1] == "json" && !json.Valid([]byte(out)) {
				t.Fatalf("invalid JSON: %s", out)
			}
		}
	})
}
