package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// serving says which model answered the calls of a run.
func serving(r *ledger.Record, served ...ledger.Served) { r.Treatment.Served = served }

// Nothing is claimed where something other than the treatment changed; the numbers stay, and the
// first line says why and what accepts it.
func TestEveryReasonWithholdsAClaim(t *testing.T) {
	steady := ledger.Served{Model: "sonnet-1", Asked: "sonnet", Calls: 4}
	moved := ledger.Served{Model: "sonnet-2", Asked: "sonnet", Calls: 4}
	small := ledger.Served{Model: "haiku-1", Asked: "haiku", Calls: 9}
	fired := map[string]bool{}
	for name, test := range map[string]struct {
		key, want string
		change    func(a, b []ledger.Record)
	}{
		"one name, two models": {reasonDrift, "b asked for sonnet and was served by 2 models, sonnet-2 in 20 runs and " +
			"sonnet-1 in 16", func(_, b []ledger.Record) {
			for i := range b[:20] {
				serving(&b[i], moved)
			}
		}},
		"two names, two models": {
			reasonDrift, "b was served by 2 models, sonnet-1 in 35 runs and opus-1 in 1",
			func(_, b []ledger.Record) { serving(&b[0], ledger.Served{Model: "opus-1", Asked: "opus", Calls: 4}) },
		},
		"results that fit did not run": {
			reasonHistorical, "fit did not run b: nobody knows what changed between the runs, or whether any are missing",
			func(_, b []ledger.Record) {
				for i := range b {
					b[i].Imported = &ledger.Imported{Format: "table"}
				}
			},
		},
		"a fallback": {
			reasonDrift, "the model changed in the middle of 1 run of a: sonnet-1 and sonnet-2",
			func(a, _ []ledger.Record) { serving(&a[0], steady, moved) },
		},
		"arms that are served by different models": {
			reasonDrift, "both arms asked for sonnet, but a was served by sonnet-1 and b by sonnet-2",
			func(_, b []ledger.Record) {
				for i := range b {
					serving(&b[i], moved)
				}
			},
		},
		"an arm that was added later": {
			reasonHistorical, "0 of 36 runs of a ran while b did, from 2026-07-02 00:00:00 to 2026-07-02 00:36:00",
			func(a, b []ledger.Record) {
				day := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
				for i := range a {
					atMinute(&a[i], day, i)
					atMinute(&b[i], day.AddDate(0, 0, 1), i)
				}
			},
		},
		"a fifth of an arm alone": {
			reasonHistorical, "28 of 36 runs of b ran while a did, from 2026-07-01 00:00:00 to 2026-07-01 00:36:00",
			func(a, b []ledger.Record) {
				day := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
				for i := range a {
					atMinute(&a[i], day, i)
					atMinute(&b[i], day, i+8)
				}
			},
		},
		"a program": {
			reasonDrift, "the program of the agent of b changed during the experiment, its version did not: sha256:ffffffffffff " +
				"in 35 runs and sha256:eeeeeeeeeeee in 1", func(_, b []ledger.Record) {
				for i := range b {
					b[i].AgentSHA256 = strings.Repeat("f", 64)
				}
				b[7].AgentSHA256 = strings.Repeat("e", 64)
			},
		},
		"versions of the arms": {
			reasonDrift, "both arms are builtin, but a had version 1 and b version 2", func(_, b []ledger.Record) {
				for i := range b {
					b[i].AgentVersion = "2"
				}
			},
		},
		"a pass that is none where it is graded again": {
			reasonRegraded, "t01/b/0#1: the result that key UKEY signed says pass, and grading it again fail",
			func(_, b []ledger.Record) {
				b[3].Verdict, b[3].Regraded, b[3].SignedBy = ledger.Pass, ledger.Fail, "UKEY"
			},
		},
		"a treatment that no run was given": {
			reasonNotDelivered, "no run of b was given the skill csv-tools",
			func(_, b []ledger.Record) {
				for i := range b {
					b[i].Treatment.Pieces = []ledger.Piece{skillPiece("csv-tools", ledger.GivenAbsent)}
				}
			},
		},
		"what another arm brings": {
			reasonContaminated, "a was given the skill csv-tools in 33 of 36 runs, although only b brings it",
			func(a, b []ledger.Record) {
				for i := range b {
					b[i].Treatment.Pieces = []ledger.Piece{skillPiece("csv-tools", ledger.GivenWhole)}
				}
				for i := range a[:33] {
					a[i].Treatment.Pieces = []ledger.Piece{from(ledger.FromOther, b[i].Treatment.Pieces[0])}
				}
			},
		},
		"what an arm that is not compared brings": {
			reasonContaminated, "b was given the skills csv-tools and pdf in 1 of 36 runs, although only another arm " +
				"brings them",
			func(_, b []ledger.Record) {
				for _, name := range []string{"pdf", "csv-tools"} {
					b[0].Treatment.Pieces = append(b[0].Treatment.Pieces,
						from(ledger.FromOther, skillPiece(name, ledger.GivenPart)))
				}
			},
		},
		"a task that brings what an arm brings": {
			reasonContaminated, "a was given the instructions CLAUDE.md in 12 of 36 runs, although only b brings them",
			func(a, b []ledger.Record) {
				piece := skillPiece("CLAUDE.md", ledger.GivenWhole)
				piece.Kind = ledger.PieceInstructions
				for i := range b {
					b[i].Treatment.Pieces = []ledger.Piece{piece}
				}
				for i := range a[:12] {
					a[i].Treatment.Pieces = []ledger.Piece{from(ledger.FromTask, piece)}
				}
			},
		},
		"nothing: another version in the files of the task": {"", "", func(a, b []ledger.Record) {
			for i := range b {
				b[i].Treatment.Pieces = []ledger.Piece{skillPiece("csv-tools", ledger.GivenWhole)}
				earlier := from(ledger.FromTask, b[i].Treatment.Pieces[0])
				earlier.Digest = "sha256:earlier"
				a[i].Treatment.Pieces = []ledger.Piece{earlier}
			}
		}},
		"answers of another experiment": {
			reasonReplayed,
			"24 of 72 runs were answered from the records of another experiment, whose requests differed in 1 of 3 " +
				"cases, first: system[0]",
			func(a, b []ledger.Record) {
				for i := range b[:24] {
					b[i].Replay = "runs/earlier"
				}
				b[0].ReplayedCalls, b[0].ReplayDiffered, b[0].ReplayDifference = new(3), 1, "system[0]"
				a[0].Replay, a[0].ReplayedCalls = "runs/earlier", new(int) // a model answered all
			},
		},
		"nothing: a smaller model beside it": {"", "", func(a, b []ledger.Record) {
			serving(&a[0], small, steady)
			serving(&b[5], steady, small)
			a[0].Model.Agent, b[5].Model.Agent = "sonnet", "sonnet"
			for i := range a {
				a[i].Model.Agent, b[i].Model.Agent = "sonnet", "sonnet"
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			make := func(allow ...string) *Comparison {
				a := treated(armRuns("a", repeat("FFF", 12)...), nil)
				b := treated(armRuns("b", repeat("PPF", 12)...), nil)
				for i := range a {
					serving(&a[i], steady)
					serving(&b[i], steady)
				}
				test.change(a, b)
				return compared(t, CompareConfig{Allow: allow}, a, b)
			}
			c := make()
			if test.key == "" {
				if len(c.Withheld) > 0 || c.Decision.Claim != stats.Improved {
					t.Errorf("%+v %s", c.Withheld, c.Decision.Sentence)
				}
				return
			}
			if len(c.Withheld) != 1 || c.Withheld[0].Key != test.key || c.Withheld[0].Text != test.want {
				t.Fatalf("%+v, want %q", c.Withheld, test.want)
			}
			fired[test.key] = true
			first, rest, _ := strings.Cut(strings.TrimPrefix(textOf(t, c), c.Imported+"\n"), "\n")
			head := "Not proven: "
			if test.key == reasonReplayed {
				head = "Observed (replayed): "
			}
			if c.Imported != "" {
				head = "Observed (not one experiment): "
			}
			if c.Decision.Claim != stats.NotProven || !strings.HasPrefix(first, head+test.want) {
				t.Error(first)
			}
			wantIn(t, rest, "all tasks")
			allow := c.Withheld[0].Allow
			if allow == "" {
				return
			}
			wantIn(t, first, test.want+"; --allow "+allow+" accepts it; the observed difference in pass rate is +66.7 percentage points")
			if c = make(allow); c.Decision.Claim != stats.Improved || len(c.Withheld) > 0 {
				t.Errorf("allowed: %s", c.Decision.Sentence)
			}
			wantIn(t, strings.Join(c.Warnings, "\n"), "allowed by --allow "+allow+": "+test.want)
		})
	}
	unplannedQuestion(t)
	fired[reasonNotPlanned] = true
	for key := range withholding(t) {
		fired[key] = true
	}
	for _, reason := range reasons {
		if !fired[reason.key] {
			t.Errorf("no case shows that %s withholds a claim", reason.key)
		}
	}
}

// atMinute gives a run the time of one minute of a day.
func atMinute(r *ledger.Record, day time.Time, minute int) {
	start := day.Add(time.Duration(minute) * time.Minute)
	r.StartMs, r.EndMs = start.UnixMilli(), start.Add(time.Minute).UnixMilli()
}

// withholding shows reasons that lie in the counts and the files of an experiment: none of them
// leaves a claim, or non-inferiority. It returns their keys.
func withholding(t *testing.T) map[string]bool {
	t.Helper()
	fired := map[string]bool{}
	last := func(in *Input, arm string) *ledger.Record {
		at := slices.IndexFunc(in.Records, func(r ledger.Record) bool { return r.Arm == arm && r.TaskID == "t11" })
		return &in.Records[at]
	}
	for _, test := range []struct {
		key, want string
		change    func(in *Input)
	}{
		{"", "", func(*Input) {}},
		{reasonUnplanned, "there is no plan", func(in *Input) { in.Unplanned = "there is no plan" }},
		{reasonUnsigned, "2 of 3 records are signed now", func(in *Input) {
			in.Signed = &Signing{Records: 3, Signed: 2, Gone: "2 of 3 records are signed now"}
		}},
		{reasonControls, "the control shadow has no task with verdicts on both sides", func(in *Input) {
			broken := armRuns("shadow", repeat("EEE", 12)...)
			in.Records = append(in.Records, broken...)
			in.Planned = &Planned{Arms: []string{"a", "b", "shadow"}, Controls: Controls{Shadow: "shadow"}}
		}},
		{reasonTooFewTasks, "only 9 of at least 10 tasks", func(in *Input) {
			in.Records = slices.DeleteFunc(in.Records, func(r ledger.Record) bool { return r.TaskID > "t08" })
		}},
		{reasonExclusionGap, "exclusion rates differ by 5.6 points", func(in *Input) {
			for i := range in.Records[:2] {
				in.Records[i].Verdict, in.Records[i].ErrorClass = ledger.Error, ledger.ErrorProvider
			}
		}},
		{reasonFlags, "2 open integrity flags", func(in *Input) {
			cheats := []string{"deleted a test", "skipped a test"}
			in.Findings = map[Attempt]Finding{AttemptOf(last(in, "a")): {Cheats: cheats}}
		}},
		{reasonUnreadable, "1 run of b cannot be examined: diff.patch is missing", func(in *Input) {
			in.Findings = map[Attempt]Finding{AttemptOf(last(in, "b")): {Problem: "diff.patch is missing"}}
		}},
		{reasonUnreadable, "tasks.json is missing", func(in *Input) { in.Unexamined = "tasks.json is missing" }},
		{reasonUnsure, "36 retried runs (36 with an unverified error) could change the answer", func(in *Input) {
			for i := range in.Records {
				if in.Records[i].Arm == "b" {
					in.Records[i].Unverified = 1
				}
			}
		}},
	} {
		in := Input{
			Records: append(armRuns("a", repeat("FFF", 12)...), armRuns("b", repeat("PPP", 12)...)...),
			K:       []int{1},
		}
		test.change(&in)
		built := build(t, in)
		c, err := Compare(&built.Groups[0], &built.Groups[1], CompareConfig{NonInferior: .05})
		if err != nil {
			t.Fatal(err)
		}
		if test.key == "" {
			if len(c.Withheld) > 0 || c.Decision.Claim != stats.Improved || !c.Decision.NonInferior.Shown {
				t.Fatalf("nothing is wrong: %+v %s", c.Withheld, c.Decision.Sentence)
			}
			continue
		}
		if len(c.Withheld) != 1 || c.Withheld[0].Key != test.key || c.Withheld[0].Text != test.want ||
			c.Withheld[0].WayOut == "" {
			t.Errorf("%s: %+v, want %q", test.key, c.Withheld, test.want)
			continue
		}
		fired[test.key] = true
		if c.Differ() || c.Decision.NonInferior.Shown || !strings.Contains(textOf(t, c), test.want) {
			t.Errorf("%s: %s", test.key, textOf(t, c))
		}
	}
	for key, panel := range map[string]Panel{
		reasonNotCalibrated: {Status: stats.StatusUncalibrated},
		reasonLabels:        {Status: stats.StatusOK},
	} {
		withheld, _ := Withhold(nil, &Basis{Panel: &panel})
		if len(withheld) == 1 && len(Sentences(withheld)) == 1 {
			fired[withheld[0].Key] = withheld[0].Key == key
		}
	}
	return fired
}

// from says who brings a piece.
func from(who string, piece ledger.Piece) ledger.Piece {
	piece.From = who
	return piece
}

// A report of several arms says what would withhold a claim about them, and that equal arms are an
// A/A experiment, wherever it is read.
func TestAReportSaysWhatWithholdsClaimsBetweenItsArms(t *testing.T) {
	const name, apart = "b against a: ", "both arms are builtin, but a had version 1 and b version 2"
	updated := func(b *ledger.Record) { b.AgentVersion = "2" }
	for _, test := range []struct {
		want   string
		allow  []string
		change func(b *ledger.Record)
	}{
		{"no claim because: " + apart + "; --allow drift accepts it", nil, updated},
		{"allowed by --allow drift: " + apart, []string{reasonDrift}, updated},
		{
			"both arms are the same configuration: an A/A experiment", nil,
			func(b *ledger.Record) { b.ArmHash = "sha256:a" },
		},
	} {
		a, b := treated(armRuns("a", repeat("FFF", 12)...), nil), treated(armRuns("b", repeat("PPF", 12)...), nil)
		for i := range b {
			test.change(&b[i])
		}
		built := build(t, Input{Records: slices.Concat(a, b), K: []int{1}, Allow: test.allow})
		wantIn(t, strings.Join(built.Warnings, "\n"), name+test.want)
		var text bytes.Buffer
		if err := built.Text(&text, []int{1}); err != nil {
			t.Fatal(err)
		}
		wantIn(t, text.String(), name+test.want)
		wantIn(t, markdownOf(t, built, []int{1}, Compact), name+test.want)
	}
}

// What reached an arm that does not bring it is counted, and is no delivery that failed.
func TestWhatAnotherArmBringsIsCounted(t *testing.T) {
	after := treated(armRuns("after", repeat("PPF", 12)...), opening(36))
	before := beforeRuns()
	for i := range before[:33] {
		before[i].Treatment.Pieces = []ledger.Piece{from(ledger.FromOther, skillPiece("csv-tools", ledger.GivenWhole))}
	}
	c := compared(t, CompareConfig{}, before, after)
	const line = "treatment: skill csv-tools given in 36 of 36 runs of after and 33 of 36 of before"
	wantIn(t, textOf(t, c), line)
	if c.Treatment.Undelivered() != "" || !c.Treatment.Pieces[0].Differs {
		t.Errorf("%q %+v", c.Treatment.Undelivered(), c.Treatment.Pieces)
	}
	built := build(t, Input{
		Records: slices.Concat(before, after, treated(armRuns("third", repeat("PPF", 12)...), nil)),
		Planned: &Planned{Arms: []string{"before", "after", "third"}},
		K:       []int{1},
	})
	wantIn(t, built.Groups[0].Withheld[0].Text,
		"before was given the skill csv-tools in 33 of 36 runs, although only another arm brings it")
	family, err := CompareArms([]*Group{&built.Groups[0], &built.Groups[1], &built.Groups[2]}, false, CompareConfig{})
	if err != nil {
		t.Fatal(err)
	}
	wantIn(t, strings.Join(family.facts(), "\n"), "given in 36 of 36 runs of after, 33 of 36 of before and 0 of 36 of third")
	wantIn(t, family.headline(), "claims are withheld about 2 of 3 comparisons")
}

// An arm whose agent was updated while it ran is shown in parts, about which nothing is claimed,
// until somebody accepts it as one.
func TestAnArmThatChangedIsOneGroupOnlyWhereThatIsAllowed(t *testing.T) {
	a, b := treated(armRuns("a", repeat("FFF", 12)...), nil), treated(armRuns("b", repeat("PPF", 12)...), nil)
	for i := range b[:9] {
		b[i].AgentVersion = "2"
	}
	records := slices.Concat(a, b)
	apart := build(t, Input{Records: records, K: []int{1}})
	if len(apart.Groups) != 3 || len(apart.Groups[0].Withheld) != 0 || len(apart.Groups[1].Withheld) != 1 {
		t.Fatalf("%+v", apart.Groups)
	}
	wantIn(t, apart.Groups[1].Withheld[0].Sentence(), "the model or the agent of arm b changed during the experiment",
		"--allow drift")
	family, err := CompareArms([]*Group{&apart.Groups[0], &apart.Groups[1], &apart.Groups[2]}, false, CompareConfig{})
	if err != nil {
		t.Fatal(err)
	}
	wantIn(t, family.headline(), "claims are withheld about 2 of 2 comparisons")
	whole := build(t, Input{Records: records, K: []int{1}, Allow: []string{reasonDrift}})
	if len(whole.Groups) != 2 || len(whole.Groups[1].Withheld) != 0 {
		t.Fatalf("%+v", whole.Groups)
	}
	c, err := Compare(&whole.Groups[0], &whole.Groups[1], CompareConfig{Allow: []string{reasonDrift}})
	if err != nil || c.Decision.Claim != stats.Improved {
		t.Errorf("%+v %v", c, err)
	}
	wantIn(t, strings.Join(c.Warnings, "\n"), "the agent of b changed during the experiment: builtin 1 in 27 runs and 2 in 9")
}

// An experiment none of whose runs was given its treatment says so, not that there is no data.
func TestAnArmWithoutAnyTreatmentIsNamed(t *testing.T) {
	a, b := treated(armRuns("a", repeat("FFF", 12)...), nil), armRuns("b", repeat("EEE", 12)...)
	for i := range b {
		b[i].ErrorClass = ledger.ErrorNotDelivered
	}
	built := build(t, Input{Records: append(a, b...), K: []int{1}})
	_, err := Compare(&built.Groups[0], &built.Groups[1], CompareConfig{})
	if err == nil || !strings.Contains(err.Error(), "no run of b was given its treatment") {
		t.Error(err)
	}
}

func TestEqualArmsAreAnAAExperiment(t *testing.T) {
	make := func(change func(b []ledger.Record)) *Comparison {
		a, b := treated(armRuns("a", repeat("PF", 12)...), nil), treated(armRuns("b", repeat("PF", 12)...), nil)
		for i := range b {
			b[i].ArmHash = "sha256:a"
		}
		change(b)
		return compared(t, CompareConfig{}, a, b)
	}
	for name, test := range map[string]struct {
		change func(b []ledger.Record)
		want   string
	}{
		"side by side": {func([]ledger.Record) {}, "both arms are the same configuration: an A/A experiment"},
		"with a program that changed": {func(b []ledger.Record) {
			b[0].AgentSHA256, b[1].AgentSHA256 = "1", "2"
		}, "both arms are the same configuration: an A/A experiment"},
		"in two experiments": {func(b []ledger.Record) {
			for i := range b {
				b[i].Experiment = "f"
			}
		}, "both arms are the same configuration, measured in two experiments"},
	} {
		t.Run(name, func(t *testing.T) {
			c := make(test.change)
			warnings := strings.Join(c.Warnings, "\n")
			if !c.Same || !strings.Contains(warnings, test.want) ||
				strings.Contains(warnings, "difference is noise") { // nobody has checked the world around them
				t.Errorf("%s: %s", name, warnings)
			}
		})
	}
}

// Results that are not from one plan are shown with their numbers and claim nothing, unless the
// user says that he compares with the past.
func TestResultsThatAreNotFromOnePlanAreObserved(t *testing.T) {
	make := func(change func(a, b *Group), allow ...string) *Comparison {
		a := build(t, Input{Records: armRuns("a", repeat("FFF", 12)...), K: []int{1}}).Groups[0]
		b := build(t, Input{Records: armRuns("b", repeat("PPP", 12)...), K: []int{1}}).Groups[0]
		change(&a, &b)
		c, err := Compare(&a, &b, CompareConfig{Allow: allow, NonInferior: .05})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, change := range map[string]func(a, b *Group){
		"two experiments": func(_, b *Group) { b.Provenance.Experiment = "another" },
		"two directories": func(a, b *Group) { a.Directory, b.Directory = "main", "change" },
	} {
		c := make(change)
		if c.Differ() || c.Decision.NonInferior.Shown || len(c.Withheld) != 1 || c.Withheld[0].Key != reasonHistorical {
			t.Errorf("%s: %+v %s", name, c.Withheld, c.Decision.Sentence)
		}
		wantIn(t, textOf(t, c), "Observed (not one experiment): a and b are not from one plan: ")
		wantIn(t, textOf(t, c), "the observed difference in pass rate is +100.0 percentage points")
		if c = make(change, reasonHistorical); c.Decision.Claim != stats.Improved {
			t.Errorf("%s, allowed: %s", name, c.Decision.Sentence)
		}
		wantIn(t, strings.Join(c.Warnings, "\n"), "allowed by --allow historical: a and b are not from one plan")
		lines := strings.SplitN(textOf(t, c), "\n", 3)
		if !strings.HasPrefix(lines[1], "allowed by --allow historical: ") {
			t.Errorf("%s: what was accepted is not beside the claim: %q", name, lines[:2])
		}
	}
	if c := make(func(*Group, *Group) {}); c.Decision.Claim != stats.Improved {
		t.Errorf("one experiment: %s", c.Decision.Sentence)
	}
}
