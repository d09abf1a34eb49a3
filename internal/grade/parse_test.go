package grade

import (
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/display"

	"github.com/google/go-cmp/cmp"
)

// summary writes a report as one line: the tests with their statuses, whether it is complete, and
// what is wrong with it.
func summary(r testReport) string {
	var parts []string
	for _, test := range r.Tests {
		parts = append(parts, test.Name+"="+test.Status.String())
	}
	if r.Complete {
		parts = append(parts, "complete")
	}
	if r.Problem != "" {
		parts = append(parts, "problem")
	}
	return strings.Join(parts, ", ")
}

func compareReports(t *testing.T, parse func([]byte) testReport, cases map[string]string) {
	t.Helper()
	for input, want := range cases {
		if diff := cmp.Diff(want, summary(parse([]byte(input)))); diff != "" {
			t.Errorf("%s\n(-want +got):\n%s", input, diff)
		}
	}
}

func TestTAP(t *testing.T) {
	compareReports(t, parseTAP, map[string]string{
		"TAP version 13\n1..2\nok 1 - a\nnot ok 2 - b\n": "a=passed, b=failed, complete",
		"ok\nok\n1..2\n": "=passed, =passed, complete",
		"ok 1 - a # SKIP no network\nok 2 - b # TODO\nok 3 c \\# d\n1..3\n": "a=skipped, b=to do, c # d=passed, complete",
		"not ok 1 - a # todo later\n1..1\n":                                 "a=to do, complete",
		"1..0 # skip everything\n":                                          "all tests=skipped, complete",
		"ok 1 - a\n":                                                        "a=passed",
		"1..3\nok 1 - a\nok 2 - b\n":                                        "a=passed, b=passed, complete, problem",
		"1..1\nok 1 - a\nok 2 - b\n":                                        "a=passed, b=passed, complete, problem",
		"1..1\n1..1\nok 1 - a\n":                                            "a=passed, complete, problem",
		"1..1\nok 2 - a\n":                                                  "a=passed, complete, problem",
		"1..1\nBail out! on fire\n":                                         "complete, problem",
		"# Subtest: s\n    ok 1 - x\n    not ok 2 - y\n    1..2\nnot ok 1 - s\n1..1\n":    "s > x=passed, s > y=failed, s=failed, complete",
		"    ok 1 - x\n    1..1\nok 1 - s\n  ---\n  note: |\n    ok 1 - z\n  ...\n1..1\n": "s > x=passed, complete",

		"    ok 1 - x\nok 1 - s\n1..1\n": "s > x=passed, complete, problem",
		"":                               "",
		"okay then\nprinted by the program\n1..0\n": "complete",
	})
}

// TestTAPSaysWhatWasSeen: what a report says about a failed test is its message.
func TestTAPSaysWhatWasSeen(t *testing.T) {
	for input, want := range map[string]string{
		"1..2\nnot ok 1 - a\n# got 1, not 2\nok 2 - b\n# fine\n":                                                                        "got 1, not 2",
		"1..1\nnot ok 1 - a\n  ---\n  type: 'test'\n  error: |-\n    -1 !== 5\n\n  expected: 5\n  stack: |-\n    x\n  ...\n# tests 1\n": "error -1 !== 5 expected: 5",
		"    not ok 1 - x\n    # got 3\n    1..1\nnot ok 1 - s\n  ---\n  error: '1 subtest failed'\n  ...\n1..1\n":                      "got 3",
		"# Subtest: a\nok 1 - b\nnot ok 2 - a\n# Subtest: c\nok 3 - c\n1..3\n":                                                          "",
	} {
		t.Run(input, func(t *testing.T) {
			for _, test := range parseTAP([]byte(input)).Tests {
				if test.Status == testFailed {
					if test.Message != want {
						t.Errorf("%q: the message is %q, not %q", input, test.Message, want)
					}
					break
				}
			}
		})
	}
}

func TestJUnit(t *testing.T) {
	compareReports(t, parseJUnit, map[string]string{
		`<testsuites><testsuite tests="2"><testcase classname="m.C" name="a"/><testcase name="b"><failure message="no">trace</failure></testcase></testsuite></testsuites>`: "m.C > a=passed, b=failed, complete",
		`<testsuite tests="1"><testcase name="a"><skipped/></testcase></testsuite>`:                                                                                         "a=skipped, complete",
		`<testsuite><testcase name="a"><error/><skipped/></testcase></testsuite>`:                                                                                           "a=failed, complete",
		`<testsuite tests="2"><testcase name="a"/></testsuite>`:                                                                                                             "a=passed, complete, problem",
		`<testsuite><testcase name="a"/>`: "a=passed, problem",
		`<html/>`:                         "",
		`<testsuite><testcase name="a"><testcase name="b"/></testcase></testsuite>`: "a=passed, complete, problem",
		`<testsuite><error>collection</error></testsuite>`:                          "complete, problem",
		`<!DOCTYPE x [<!ENTITY a "b">]><testsuite><testcase name="a"/></testsuite>`: "problem",
	})
}

func TestDeeplyNestedXMLIsGivenUp(t *testing.T) {
	compareReports(t, parseJUnit, map[string]string{strings.Repeat("<a>", 200): "problem"})
}

func TestGoTestEvents(t *testing.T) {
	compareReports(t, parseGoTest, map[string]string{
		`{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- PASS: TestB\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}`: "TestA=passed, complete",
		`{"Action":"run","Test":"TestA"}
{"Action":"fail","Test":"TestA"}
{"Action":"fail"}`: "TestA=failed, package=failed, complete",
		`{"Action":"run","Test":"TestA"}
{"Action":"run","Test":"TestA/sub"}
{"Action":"skip","Test":"TestA/sub"}
{"Action":"pass","Test":"TestA"}
{"Action":"pass"}`: "TestA/sub=skipped, TestA=passed, complete",
		`{"Action":"run","Test":"TestA"}`: "TestA=failed",
		`{"Action":"pass","Test":"TestA"}
{"Action":"pass"}`: "TestA=passed, complete, problem",
		`{"Action":"run","Test":"TestA"}
{"Action":"pass","Test":"TestA"}
{"Action":"run","Test":"TestA"}
{"Action":"fail","Test":"TestA"}
{"Action":"pass"}`: "TestA=passed, TestA=failed, complete, problem",
		"plain text\n{broken": "problem",
	})
}

func TestNonceMustBeTheLastLine(t *testing.T) {
	parse := func(data []byte) testReport { return parseNonce(data, "n0nce") }
	compareReports(t, parse, map[string]string{
		"running\nn0nce\n":      "command=passed, complete",
		"n0nce\n\n":             "command=passed, complete",
		"n0nce\nsomething else": "problem",
		"":                      "problem",
		"xn0nce":                "problem",
	})
	if parseNonce(nil, "").Problem == "" {
		t.Error("an empty nonce was found in nothing")
	}
}

func TestConviction(t *testing.T) {
	passed := testReport{
		Complete: true,
		Tests:    []testResult{{Name: "s > a", Status: testPassed}, {Name: "b", Status: testPassed}},
	}
	for name, test := range map[string]struct {
		evidence evidence
		want     expectation
		reason   string
	}{
		"good":                   {evidence{report: passed}, expectation{names: []string{"s > a", "b"}}, ""},
		"declared without suite": {evidence{report: passed}, expectation{names: []string{"a", "b"}}, ""},
		"more than expected":     {evidence{report: passed}, expectation{names: []string{"b"}}, ""},
		"nothing known":          {evidence{report: passed}, expectation{}, ""},
		"status":                 {evidence{report: passed, status: 1, note: "boom"}, expectation{}, "exit 1: boom"},
		"aborted":                {evidence{report: passed, abortReason: "timed out"}, expectation{}, "timed out"},
		"no end": {
			evidence{report: testReport{Tests: passed.Tests}},
			expectation{},
			"the tests did not finish",
		},
		"no tests": {evidence{report: testReport{Complete: true}}, expectation{}, "no test ran"},
		"missing": {
			evidence{report: passed},
			expectation{names: []string{"c"}},
			`the test "c" was not reported`,
		},
		"too few": {
			evidence{report: passed},
			expectation{names: []string{"b", "b"}},
			`the test "b" was reported 1 times instead of 2`,
		},
		"missing name from source": {
			evidence{report: passed},
			expectation{leaves: []string{"c"}},
			`the test "c" was not reported`,
		},
		"failed": {
			evidence{report: testReport{
				Complete: true,
				Tests:    []testResult{{Name: "a", Status: testFailed, Message: "1 is\n not 2"}},
			}},
			expectation{},
			"a failed (1 is not 2)",
		},
		"contradicts itself": {
			evidence{report: testReport{
				Complete: true,
				Tests:    []testResult{{Name: "a", Status: testPassed}, {Name: "a", Status: testFailed}},
			}},
			expectation{},
			"a failed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.evidence.failure(test.want); got != test.reason {
				t.Errorf("%s: %q, want %q", name, got, test.reason)
			}
		})
	}
}

func TestWitnessBelievesSecretsOnly(t *testing.T) {
	secrets := newPads([]string{"a", "b"})
	a, b := secrets.Names["a"][0], secrets.Names["b"][0]
	record := func(status, name, pad string) string {
		return "\n\x1efit {\"status\":\"" + status + "\",\"name\":\"" + name + "\",\"pad\":\"" + pad + "\"}\n"
	}
	for name, test := range map[string]struct{ output, want string }{
		"good": {"noise" + record("pass", "a", a) + record("pass", "b", b) + record("done", "",
			secrets.Done), "a=passed, b=passed, complete"},
		"a secret twice":      {record("pass", "a", a) + record("pass", "a", a), "a=passed, problem"},
		"a secret of another": {record("pass", "b", a), "problem"},
		"a guess":             {record("pass", "a", "0"), "problem"},
		"a guessed end":       {record("done", "", ""), "problem"},
		"more after the end":  {record("done", "", secrets.Done) + record("pass", "a", a), "complete, problem"},
		"no record":           {"\x1efit nonsense\n", "problem"},
		"a failure":           {record("fail", "a", ""), "a=failed"},
		"a line without end":  {strings.Repeat("x", 1<<20) + record("pass", "a", a), "a=passed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWitness(secrets)
			for piece := range strings.SplitSeq(test.output, "i") {
				// In pieces, as output comes.
				_, _ = w.Write([]byte(piece))
				_, _ = w.Write([]byte("i"))
			}
			if got := summary(w.report); got != test.want {
				t.Errorf("%s: %s, want %s", name, got, test.want)
			}
		})
	}
}

func TestReplacementsOfGoModules(t *testing.T) {
	mod := "module m\n\nreplace a => ../a // why\nreplace (\n\tb v1 => c v2\n)\nreplace( \nd => e\n)\nrequire x v1\n"
	if diff := cmp.Diff([]string{"a => ../a", "b v1 => c v2", "d => e"}, replacements(mod)); diff != "" {
		t.Error(diff)
	}
}

func TestNamesInSource(t *testing.T) {
	node := "test('one', () => {});\n  it(\"two\", x);\n// test('three', x)\n/*\ntest('four', x)\n*/\ntest(`five`, x); test(`${six}`, y)\ntest.skip('seven', x)\n"
	if diff := cmp.Diff([]string{"five", "one", "two"}, nodeNames(node)); diff != "" {
		t.Error(diff)
	}
	python := "class A:\n    def test_a(self): pass\nasync def test_b(): pass\n# def test_c(): pass\ndef helper(): pass\n"
	if diff := cmp.Diff([]string{"test_a", "test_b"}, pythonNames(python)); diff != "" {
		t.Error(diff)
	}
}

// fuzzReport checks what must hold for every report of every format.
func fuzzReport(f *testing.F, parse func([]byte) testReport, seeds ...string) {
	f.Helper()
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		report := parse(data)
		if len(report.Tests) > maxReportTests+1 {
			t.Errorf("%d tests", len(report.Tests))
		}
		for _, test := range report.Tests {
			if test.Name != display.Text(test.Name) || len(test.Name) > maxTestName+3 ||
				len(test.Message) > maxMessage+3 {
				t.Errorf("a test has the name %q and the message %q", test.Name, test.Message)
			}
		}
		shown := evidence{report: report}
		if reason := shown.failure(expectation{names: []string{"a name that is not in it"}}); reason == "" {
			t.Error("a report without the expected test was believed")
		}
	})
}

func FuzzTAP(f *testing.F) {
	fuzzReport(f, parseTAP, "TAP version 13\n1..2\nok 1 - a\nnot ok 2 - b # TODO x\n",
		"    ok 1 - x\n    1..1\nok 1 - s\n  ---\n  a: b\n  ...\n1..1\n")
}

func FuzzJUnit(f *testing.F) {
	fuzzReport(
		f,
		parseJUnit,
		`<testsuites><testsuite tests="1"><testcase name="a"><failure/></testcase></testsuite></testsuites>`,
	)
}

func FuzzGoTest(f *testing.F) {
	fuzzReport(f, parseGoTest, `{"Action":"run","Test":"TestA"}`+"\n"+`{"Action":"pass","Test":"TestA"}`+"\n"+
		`{"Action":"pass"}`)
}

func FuzzNonce(f *testing.F) {
	fuzzReport(f, func(data []byte) testReport { return parseNonce(data, "n0nce") }, "x\nn0nce\n")
}

func FuzzWitness(f *testing.F) {
	secrets := newPads([]string{"a"})
	fuzzReport(f, func(data []byte) testReport {
		w := newWitness(secrets)
		_, _ = w.Write(data)
		return w.report
	}, "\x1efit {\"status\":\"pass\",\"name\":\"a\",\"pad\":\"0\"}\n", "\x1efit {\"status\":\"fail\",\"name\":\"b\"}\n")
}
