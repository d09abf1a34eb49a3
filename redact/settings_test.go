package redact

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDefaultVariablesAndKinds(t *testing.T) {
	want := strings.Fields(`ANTHROPIC_API_KEY AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY DATABASE_PASSWORD GH_TOKEN
		GITHUB_TOKEN JWT_SECRET MCP_TOKEN MICROSOFT_APP_ID MICROSOFT_APP_PASSWORD MICROSOFT_APP_TENANT_ID
		PRODUCT_LANDMARK_TOKEN SERVICE_SECRET SUPABASE_ANON_KEY SUPABASE_SERVICE_ROLE_KEY`)
	if diff := cmp.Diff(want, DefaultEnvVars()); diff != "" {
		t.Error(diff)
	}
	kinds := strings.Fields(`anthropic gh-pat gh-installation gh-oauth gh-fine-grained gh-b64-basic-credential`)
	for i, kind := range kinds {
		if shapes[i].kind != kind {
			t.Errorf("shape %d is called %s, want %s", i, shapes[i].kind, kind)
		}
	}
	if len(shapes) > maxShapes {
		t.Errorf("%d shapes, room for %d", len(shapes), maxShapes)
	}
}

func TestSettings(t *testing.T) {
	const value = "s3cr3t-value-0001"
	for _, c := range []struct {
		name    string
		environ []string
		want    string
		warning string
	}{
		{"a default variable", []string{"GH_TOKEN=" + value}, "[REDACTED:env:GH_TOKEN]", ""},
		{
			"the first name of a shared value",
			[]string{"GITHUB_TOKEN=" + value, "GH_TOKEN=" + value},
			"[REDACTED:env:GH_TOKEN]", "",
		},
		{
			"the last line of a variable counts",
			[]string{"GH_TOKEN=something else", "GH_TOKEN=" + value},
			"[REDACTED:env:GH_TOKEN]", "",
		},
		{
			"white space around a value is no part of it",
			[]string{"GH_TOKEN= " + value + "\n"},
			"[REDACTED:env:GH_TOKEN]", "",
		},
		{"other variables are not looked at", []string{"EDITOR=" + value}, value, ""},
		{"an empty value never matches", []string{"GH_TOKEN="}, value, ""},
		{
			"the list replaces the default",
			[]string{"LIBHARNESS_REDACTION_ENV_VARS=MINE", "GH_TOKEN=" + value},
			value,
			"",
		},
		{
			"the list is trimmed, blanks are dropped",
			[]string{"LIBHARNESS_REDACTION_ENV_VARS= , MINE ,,", "MINE=" + value},
			"[REDACTED:env:MINE]", "",
		},
		{
			"an empty list is the default",
			[]string{"LIBHARNESS_REDACTION_ENV_VARS=", "GH_TOKEN=" + value},
			"[REDACTED:env:GH_TOKEN]", "",
		},
		{
			"only separators are the default, with a warning",
			[]string{"LIBHARNESS_REDACTION_ENV_VARS= , ", "GH_TOKEN=" + value},
			"[REDACTED:env:GH_TOKEN]",
			"default list",
		},
		{
			"the other spelling of the list",
			[]string{"LIBEVAL_REDACTION_ENV_VARS=MINE", "MINE=" + value},
			"[REDACTED:env:MINE]", "",
		},
		{
			"LIBHARNESS wins over LIBEVAL",
			[]string{"LIBEVAL_REDACTION_ENV_VARS=OTHER", "LIBHARNESS_REDACTION_ENV_VARS=MINE", "MINE=" + value},
			"[REDACTED:env:MINE]", "",
		},
		{
			"1 disables, with a warning",
			[]string{"LIBHARNESS_REDACTION_DISABLED=1", "GH_TOKEN=" + value},
			value,
			"disabled",
		},
		{"LIBEVAL disables too", []string{"LIBEVAL_REDACTION_DISABLED=1", "GH_TOKEN=" + value}, value, "disabled"},
		{
			"LIBHARNESS decides about disabling",
			[]string{"LIBHARNESS_REDACTION_DISABLED=0", "LIBEVAL_REDACTION_DISABLED=1", "GH_TOKEN=" + value},
			"[REDACTED:env:GH_TOKEN]", "",
		},
		{
			"true does not disable",
			[]string{"LIBHARNESS_REDACTION_DISABLED=true", "GH_TOKEN=" + value},
			"[REDACTED:env:GH_TOKEN]", "",
		},
		{
			"yes does not disable",
			[]string{"LIBHARNESS_REDACTION_DISABLED=yes", "GH_TOKEN=" + value},
			"[REDACTED:env:GH_TOKEN]", "",
		},
		{
			"in CI the warning tells about artifacts",
			[]string{"LIBHARNESS_REDACTION_DISABLED=1", "CI=true", "GH_TOKEN=" + value},
			value,
			"workflow artifacts of a public repository",
		},
		{
			"a value under 4 characters is named",
			[]string{"GH_TOKEN=abc"},
			value,
			"GH_TOKEN is shorter than 4 characters",
		},
		{"a value under 9 bytes is named", []string{"GH_TOKEN=abcd1234"}, value, "GH_TOKEN is shorter than 9 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var warnings bytes.Buffer
			r := New(Config{Environ: c.environ, Warn: &warnings})
			if got := r.String(value); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if c.warning == "" && warnings.Len() > 0 || !strings.Contains(warnings.String(), c.warning) {
				t.Errorf("warnings: %q, want %q", warnings.String(), c.warning)
			}
			if strings.Count(warnings.String(), "\n") > 1 {
				t.Errorf("warned more than once: %q", warnings.String())
			}
			if ci := strings.Contains(warnings.String(), "artifacts"); ci &&
				!strings.Contains(strings.Join(c.environ, " "), "CI=true") {
				t.Errorf("told about artifacts outside CI: %q", warnings.String())
			}
		})
	}
}

func TestDisabledGivesBackTheSameBytes(t *testing.T) {
	var warnings bytes.Buffer
	byHand := New(Config{Disable: true, Warn: &warnings})
	if strings.Count(warnings.String(), "\n") != 1 {
		t.Errorf("want one warning, got %q", warnings.String())
	}
	for _, r := range []*Redactor{byHand, {}, nil} {
		in := []byte(`{"key":"ghp_` + strings.Repeat("a", 36) + `"}`)
		if r.Enabled() {
			t.Error("it says it is enabled")
		}
		if out := r.JSON(in); &out[0] != &in[0] {
			t.Error("JSON made a copy")
		}
		if out := r.Bytes(in); &out[0] != &in[0] {
			t.Error("Bytes made a copy")
		}
		if r != nil && r.Lane().Line(in)[0] != in[0] {
			t.Error("a lane changed the line")
		}
	}
}

func TestWithKnowsMoreAndLeavesTheOriginalAlone(t *testing.T) {
	first := New(Config{
		Environ: []string{"GH_TOKEN=first-secret-1"},
		Extra:   map[string]string{"TASK": "second-secret-2"},
	})
	more := first.With(map[string]string{"BEARER": "third-secret-3", "odd \"name\"": "fourth-secret-4"})
	const text = "first-secret-1 second-secret-2 third-secret-3 fourth-secret-4"
	if got, want := first.String(text), "[REDACTED:env:GH_TOKEN] [REDACTED:env:TASK] third-secret-3 fourth-secret-4"; got != want {
		t.Errorf("got %q", got)
	}
	if got, want := more.String(text), "[REDACTED:env:GH_TOKEN] [REDACTED:env:TASK] [REDACTED:env:BEARER] [REDACTED:env:odd__name_]"; got != want {
		t.Errorf("got %q", got)
	}
	if (&Redactor{}).With(map[string]string{"A": "some-secret"}).Enabled() {
		t.Error("With enabled a disabled redactor")
	}
}
