package redact

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

func alnums(n int) string {
	return strings.Repeat("aB3dE6gH9jKlMnOpQrStUvWxYz012345", n/32+1)[:n]
}

func TestShapes(t *testing.T) {
	r := New(Config{})
	for kind, keys := range map[string][]string{
		"anthropic": {
			"sk-ant-" + alnums(13), "sk-ant-api03-" + alnums(80) + "-_A",
			"xsk-ant-" + alnums(80),
		},
		"gh-pat":          {"ghp_" + alnums(36), "ghp_" + alnums(30), "ghp_" + alnums(251)},
		"gh-installation": {"ghs_" + alnums(36)},
		"gh-oauth":        {"gho_" + alnums(36)},
		"gh-user":         {"ghu_" + alnums(36)},
		"gh-refresh":      {"ghr_" + alnums(76)},
		"gh-fine-grained": {"github_pat_" + alnums(22) + "_" + alnums(59), "github_pat_" + alnums(78)},
		"gh-b64-basic-credential": {
			"eC1hY2Nlc3MtdG9rZW46" + alnums(8), "eC1hY2Nlc3MtdG9rZW46" + alnums(54) + "=",
			"eC1hY2Nlc3MtdG9rZW46" + alnums(53) + "==",
		},
		"openai": {
			"sk-" + alnums(48), "sk-proj-" + alnums(40) + "_-T3BlbkFJ" + alnums(20),
			"sk-svcacct-" + alnums(40),
		},
		"google":       {"AIza" + alnums(35)},
		"google-oauth": {"ya29." + alnums(60), "GOCSPX-" + alnums(28)},
		"aws":          {"AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE"},
		"slack": {
			"xoxb-123456789012-1234567890123-" + alnums(24), "xoxp-1-2-3-" + alnums(32),
			"xapp-1-A0-1-" + alnums(20),
		},
		"npm":         {"npm_" + alnums(36)},
		"pypi":        {"pypi-AgEIcHlwaS5vcmc" + alnums(40), "pypi-" + alnums(60)},
		"gitlab":      {"glpat-" + alnums(20), "glrt-" + alnums(20)},
		"stripe":      {"sk_live_" + alnums(24), "rk_live_" + alnums(99)},
		"huggingface": {"hf_" + alnums(34)},
		"jwt":         {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"},
		"private-key": {
			"-----BEGIN RSA PRIVATE KEY-----\n" + alnums(64) + "\n" + alnums(64) + "\n" + alnums(20) +
				"==\n-----END RSA PRIVATE KEY-----",
			"-----BEGIN PRIVATE KEY-----\\n" + alnums(64) + "\\n" + alnums(20) + "\\n-----END PRIVATE KEY-----",
			"-----BEGIN OPENSSH PRIVATE KEY-----\r\n" + alnums(70) + "\r\n-----END OPENSSH PRIVATE KEY-----",
			"-----BEGIN ENCRYPTED PRIVATE KEY-----\n" + alnums(64) + "\n" + alnums(30),
			"-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\n" + alnums(64) +
				"\n-----END PGP PRIVATE KEY BLOCK-----",
			"-----BEGIN RSA PRIVATE KEY-----\n     2\t" + alnums(64) + "\n     3\t-----END RSA PRIVATE KEY-----",
			"-----BEGIN PRIVATE KEY-----\n" + alnums(12) + "\n-----END PRIVATE KEY-----",
			"-----BEGIN PRIVATE KEY-----\n" + alnums(6) + "==\n-----END PRIVATE KEY-----",
			"-----BEGIN EC PRIVATE KEY-----\\n" + alnums(12) + "\\n-----END EC PRIVATE KEY-----",
			"-----BEGIN EC PRIVATE KEY-----\r\n  " + alnums(8) + "\r\n  " + alnums(8) +
				"\r\n  -----END EC PRIVATE KEY-----",
			"-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(alnums(8)+"\n", 100) + "-----END PRIVATE KEY-----",
			"-----BEGIN PRIVATE KEY-----" + alnums(12) + "-----END PRIVATE KEY-----",
		},
	} {
		t.Run(kind, func(t *testing.T) {
			want := "[REDACTED:pattern:" + kind + "]"
			for _, key := range keys {
				expect := func(in, want string) {
					t.Helper()
					if got := r.String(in); got != want {
						t.Errorf("%s: %q became %q, want %q", kind, in, got, want)
					}
				}
				if strings.HasPrefix(key, "xsk-ant") {
					expect(key, "x"+want)
					continue
				}
				expect(key, want)
				for _, before := range []string{
					" ", "-", ".", "=", "\"", "\\n", "\\t", "\\u000a", "%20", "é", "\x1b[1;32m",
					"\\u001b[0m",
				} {
					if kind == "private-key" && before == "-" || kind == "jwt" &&
						!slices.Contains([]string{" ", "=", "\"", "é"}, before) {
						continue // they would be part of it, or of the word it stands in
					}
					expect(before+key, strings.TrimSuffix(before, "\\")+want)
				}
				for _, after := range []string{",", ";", "\n", "\"", " ", ")"} {
					expect(key+after, want+after)
				}
				// A key block that is cut off has no end but what cannot be part of it.
				quoted, _ := json.Marshal(map[string]any{"content": "line one\n" + key + "\n(line two)"})
				wantJSON, _ := json.Marshal(map[string]any{"content": "line one\n" + want + "\n(line two)"})
				if got := r.JSON(quoted); string(got) != string(wantJSON) {
					t.Errorf("%s: %s became %s", kind, quoted, got)
				}
				nested, _ := json.Marshal(map[string]any{"content": string(quoted)})
				if got := r.JSON(nested); strings.Contains(string(got), alnums(12)) ||
					!strings.Contains(string(got), want) || !json.Valid(got) {
					t.Errorf("%s: nested %s became %s", kind, nested, got)
				}
			}
		})
	}
}

func TestInnocentTextIsLeftAlone(t *testing.T) {
	r := New(Config{Environ: []string{"GH_TOKEN=s3cr3t-value-0001", "DATABASE_PASSWORD=abcd1234"}})
	for _, text := range []string{
		"The quick brown fox; task-runner, risk-free, disk-cache-of-the-long-kind-that-never-ends-really",
		"# Title\n\n- item `code` **bold** [link](https://example.com/a/b?c=d%20e&f=%3Cg%3E)",
		"da39a3ee5e6b4b0d3255bfef95601890afd80709 550e8400-e29b-41d4-a716-446655440000",
		"ghp_short ghp_" + alnums(29) + " _ghp_" + alnums(36) + " xghp_" + alnums(36),
		"eC1hY2Nlc3MtdG9rZW46", "eC1hY2Nlc3MtdG9rZW46" + alnums(7),
		"sk-ant-" + alnums(12), "sk-" + alnums(20), "AKIA1234", "npm_install", "hf_hub_download", "xoxo-love",
		"export PATH=$PATH:/usr/local/bin && echo 'done' | sed -e 's/a/b/'",
		"SGVsbG8sIHRoaXMgaXMganVzdCBhIGJlbmlnbiB0ZXh0IGluIGJhc2U2NA==",
		`if strings.HasPrefix(pem, "-----BEGIN RSA PRIVATE KEY-----") { return "-----END RSA PRIVATE KEY-----" }`,
		"between -----BEGIN RSA PRIVATE KEY----- and -----END RSA PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----\n<your key>\n-----END PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----\\n\\n-----END PRIVATE KEY-----",
		"-----BEGIN PUBLIC KEY-----\n" + alnums(64) + "\n-----END PUBLIC KEY-----",
		"eyJhbGciOiJIUzI1NiJ9 and eyJhbGciOiJIUzI1NiJ9.", "YWJjZDEyMzQ=", "6162636431323334",
	} {
		in := []byte(text)
		if out := r.Bytes(in); &out[0] != &in[0] {
			t.Errorf("%q became %q", in, out)
		}
		if out := r.String(text); out != text {
			t.Errorf("%q became %q", text, out)
		}
		quoted, _ := json.Marshal(text)
		if out := r.JSON(quoted); &out[0] != &quoted[0] {
			t.Errorf("%s became %s", quoted, out)
		}
	}
}

func TestLongRunsOfOneShapeTakeLinearTime(t *testing.T) {
	r := New(Config{})
	for _, piece := range []string{
		"sk-ant-", "sk-proj-", "glpat-", "eyJaaaa.", ".eyJ", "-----BEGIN ", `\u0061`, "%61",
		"\\", "hf_", "eC1hY2Nlc3MtdG9rZW46",
	} {
		text := []byte(strings.Repeat(piece, testenv.Size(1<<20, 100<<10)/len(piece)))
		r.Bytes(text)
		r.JSON(text)
	}
}

// A private key is found however little of it there is, and wherever the text is cut.
func TestShortKeysAreFoundInPieces(t *testing.T) {
	r := New(Config{})
	for _, key := range []string{
		"-----BEGIN PRIVATE KEY-----\n" + alnums(12) + "\n-----END PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----\\n" + alnums(12) + "\\n-----END PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(alnums(10)+"\n", 40) + "-----END PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----\\n" + strings.Repeat(alnums(10)+"\\n", 40) + "-----END PRIVATE KEY-----",
	} {
		text, want := "The key is "+key+", use it.", "The key is [REDACTED:pattern:private-key], use it."
		for cut := range len(text) {
			checkCut(t, r, text, want, cut)
		}
		checkBytewise(t, r, text, want)
	}
}
