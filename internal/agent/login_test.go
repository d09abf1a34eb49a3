package agent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsSecretInALogin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "login.json")
	for content, want := range map[string]map[string]string{
		`{"apiKey":"12345678","user":"somebody@example.com","tokens":{"access_token":"abcdefgh","kind":"long enough"}}`: {
			"X_APIKEY": "12345678", "X_TOKENS_ACCESS_TOKEN": "abcdefgh",
		},
		`{"token":"short"}`: {},
		`{"refreshTokens":["abcdefgh","ijklmnop"],"expires_in":12345678,"secret":null}`: {"X_REFRESHTOKENS_1": "abcdefgh", "X_REFRESHTOKENS_2": "ijklmnop"},
		`[{"password":"a b c d e"}]`: {"X_1_PASSWORD": "a b c d e"},
		`{"token":"abcdefgh"`:        {},
	} {
		t.Run(content, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			loginSecrets(got, "X", file)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, path := range []string{"", file + ".missing", filepath.Dir(file)} {
		got := map[string]string{}
		if loginSecrets(got, "X", path); len(got) > 0 {
			t.Errorf("%q: %v", path, got)
		}
	}
}

func TestAListOfToolsMustMeanSomething(t *testing.T) {
	own := []string{"Bash", "Read"}
	for _, test := range []struct {
		allowed []string
		refused string
	}{
		{nil, ""},
		{[]string{"Bash"}, ""},
		{[]string{"Read", "WebSearch", "TodoWrite"}, ""}, // written for several agents
		{[]string{"mcp__notes__add"}, ""},
		{[]string{"Bash", "Bogus"}, `agent some-agent has no tool "Bogus"; it has Bash, Read`},
		{[]string{"WebSearch"}, "agent some-agent has none of the tools WebSearch; it has Bash, Read"},
	} {
		t.Run(test.refused, func(t *testing.T) {
			got := ""
			if err := RequireTools("some-agent", own, test.allowed); err != nil {
				got = err.Error()
			}
			if got != test.refused {
				t.Errorf("%q: %q, want %q", test.allowed, got, test.refused)
			}
		})
	}
}
