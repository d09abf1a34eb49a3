package selfedit

import (
	"path/filepath"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/lazyregexp"
)

// commandMembers are the members of a settings file that name programs the agent's host runs.
var commandMembers = []string{
	"hooks", "statusLine", "apiKeyHelper", "awsAuthRefresh", "awsCredentialExport",
	"otelHeadersHelper", "fileSuggestion",
}

// foldName maps names that some file system treats as one to the same name: it ignores letter case,
// composes characters, and drops invisible ones.
func foldName(name string) string {
	visible := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, name)
	return norm.NFC.String(cases.Fold().String(norm.NFC.String(visible)))
}

// checkProtectedName refuses the names that no rule can open: settings, hooks, and what belongs to
// git.
func checkProtectedName(rel string) error {
	parts := strings.Split(foldName(rel), "/")
	inSettings := false
	for i, part := range parts {
		last := i == len(parts)-1
		switch {
		case part == ".git":
			return notAllowed("'%s' belongs to git, and no rule can make it writable", display.Name(rel))
		case part == ".husky", inSettings && part == "hooks":
			return notAllowed("'%s' is a hook, and no rule can make hooks writable", display.Name(rel))
		case last && isSettingsName(part, i > 0 && parts[i-1] == ".claude"):
			return notAllowed("'%s' is a settings file, and no rule can make settings writable", display.Name(rel))
		}
		inSettings = inSettings || part == ".claude"
	}
	return nil
}

func isSettingsName(name string, inSettings bool) bool {
	if name == ".claude.json" || name == "managed-settings.json" || name == ".claude" {
		return true
	}
	return inSettings && strings.HasPrefix(name, "settings") && strings.HasSuffix(name, ".json")
}

// runsProgram are the variables of git whose values are commands. Their files are as good as hooks.
var runsProgram = lazyregexp.New(`^(?:core\.(?:fsmonitor|editor|pager|askpass|gitproxy)|sequence\.editor|` +
	`(?:alias|browser|filter|instaweb|man|pager|(?:diff|gui|merge)tool)\..*|(?:help|web)\.browser|diff\.external|` +
	`imap\.tunnel|interactive\.difffilter|sendemail\.smtpserver|submodule\..*\.update|` +
	`remote\..*\.(?:uploadpack|receivepack|vcs)|.*(?:cmd|command|driver|helper|hook|program|textconv))$`)

// names reports whether a path leads to a target, through links or not.
func names(path, target string) bool {
	real, err := filepath.EvalSymlinks(path)
	return foldName(path) == foldName(target) || err == nil && foldName(real) == foldName(target)
}

// isBelow reports whether path is dir or in it, for clean absolute paths.
func isBelow(path, dir string) bool {
	rel, err := filepath.Rel(foldName(dir), foldName(path))
	return err == nil && filepath.IsLocal(rel)
}
