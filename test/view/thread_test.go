package view

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/model/scripted"
)

// licence is a discussion in which everybody is asked, and a person decides.
const licence = `{"scenarios":[
  {"name":"lead","when":{"tool":"orchestration/Adjourn"},"turns":[
    {"calls":[{"mcp":"orchestration/Ask","input":{"question":"Which licence?"}}]},
    {"label":"collect","cases":[
      {"when":{"any_prompt":"Take MIT"},"goto":"decide"},
      {"when":{"all":[{"any_prompt":"[answer#1]"},{"any_prompt":"[answer#2]"}]},"goto":"suspend"}],"text":"I wait."},
    {"goto":"collect"},
    {"label":"suspend","calls":[{"mcp":"orchestration/Recess","input":{"reason":"People must choose.","trigger":{"kind":"missing_input","replies":1}}}]},
    {"cases":[{"when":{"any_prompt":"Take MIT"},"goto":"decide"}],"text":"Suspended."},
    {"goto":"collect"},
    {"label":"decide","calls":[{"mcp":"orchestration/Acknowledge","input":{"message":"MIT it is, Bea."}}]},
    {"calls":[{"mcp":"orchestration/Adjourn","input":{"verdict":"adjourned","summary":"We take MIT."}}]},
    {"text":"Over."}]},
  {"name":"alice","when":{"system":"You are Alice"},"turns":[
    {"calls":[{"mcp":"orchestration/Answer","input":{"message":"<script>alert(1)</script> I am for MIT.\u001b[31m"}}]},
    {"text":"Answered."}]},
  {"name":"bob","when":{"system":"You are Bob"},"turns":[
    {"calls":[{"mcp":"orchestration/Answer","input":{"message":"I am for BSD."}}]},{"text":"Answered."}]}]}`

// TestAThreadIsReadAndSteeredInTheBrowser: a person opens a thread, sees the agents answer,
// recesses, resumes, stops and adjourns; another one, in another browser, sees the same and
// decides.
func TestAThreadIsReadAndSteeredInTheBrowser(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	script, err := scripted.Parse([]byte(licence))
	if err != nil {
		t.Fatal(err)
	}
	said := scripted.NewServer(map[string]*scripted.Script{"": script}, scripted.Options{})
	released, release := context.WithCancel(t.Context())
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/release" {
			release()
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // its client has gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		wait := r.Context()
		switch {
		case bytes.Contains(body, []byte("Never answer")):
			<-wait.Done()
			return
		case bytes.Contains(body, []byte("Take your time")):
			select {
			case <-released.Done():
			case <-wait.Done():
				return
			}
		}
		said.ServeHTTP(w, r)
	}))
	defer model.Close()
	defer release()
	dir := t.TempDir()
	eve := serveBridge(t, dir, model.URL)
	invited := fitCommand(t, "bridge", "invite", "--dir", filepath.Join(dir, "bridge"), "Bea")
	bea, err := invited.Output()
	if err != nil {
		t.Fatal(err)
	}
	hostile := `<img src=x onerror=alert(1)><script>alert(2)</script>&lt;b&gt; javascript:alert(3) ` +
		"\x1b[2J\u202eevil\u202c \x00 Never answer. "
	got := decode[struct{ Body string }](t, b.run(t, "thread", map[string]any{
		"url":     eve,
		"other":   strings.TrimSpace(string(bea)),
		"release": model.URL + "/release",
		"hostile": hostile + strings.Repeat("ö", 1<<19),
	}))
	want := `<img src=x onerror=alert(1)><script>alert(2)</script>&lt;b&gt; javascript:alert(3) ` +
		`\x1b[2J\u202eevil\u202c \x00 Never answer. ` + strings.Repeat("ö", 1<<19)
	if got.Body != want {
		t.Errorf("the post of one megabyte reads %.200q…, %d bytes", got.Body, len(got.Body))
	}
	secrets(t, dir, eve, string(bea))
}

// serveBridge starts fit bridge serve with two agents and returns the address of its owner, Eve.
func serveBridge(t *testing.T, dir, model string) string {
	t.Helper()
	for name, text := range map[string]string{"alice": "You are Alice.", "bob": "You are Bob."} {
		profile := filepath.Join(dir, ".claude", "agents", name+".md")
		if err := os.MkdirAll(filepath.Dir(profile), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(profile, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := fitCommand(t, "bridge", "serve", "--dir", filepath.Join(dir, "bridge"), "--listen", "127.0.0.1:0", "--",
		"--agent", "builtin", "--isolation", "none", "--agent-profiles", "alice,bob")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "USER=Eve", "FIT_MODEL_URL="+model)
	return firstLine(t, cmd)
}

// secrets checks that nothing which a bridge and its runs have written holds a token, but for the
// owner's address.
func secrets(t *testing.T, dir string, addresses ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || entry.Name() == "owner.url" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, address := range addresses {
			parsed, err := url.Parse(strings.TrimSpace(address))
			if err != nil {
				return err
			}
			if token := parsed.Query().Get("token"); token == "" || bytes.Contains(content, []byte(token)) {
				t.Errorf("%s holds the token %q", path, token)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestTheDemoOfADiscussionIsDecidedInTheBrowser: the user of fit demo --discuss is the person whose
// word decides.
func TestTheDemoOfADiscussionIsDecidedInTheBrowser(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	cmd := fitCommand(t, "demo", "--discuss", "--view")
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "PATH="+t.TempDir()) // no program opens a browser
	cmd.Stderr = nil
	address := lineOf(t, cmd, "http://")
	said := decode[[]string](t, b.run(t, "discussed", map[string]any{
		"url": address, "question": "May we release greet today?", "post": "No, the names are not ours.",
	}))
	for _, want := range []string{`"No, the names are not ours." None of us knew that.`, "No release today."} {
		if !slices.ContainsFunc(said, func(text string) bool { return strings.Contains(text, want) }) {
			t.Errorf("the thread does not say %q: %q", want, said)
		}
	}
}
