package redact

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// The settings; the first spelling that is set wins.
var (
	envVarsSettings  = []string{"LIBHARNESS_REDACTION_ENV_VARS", "LIBEVAL_REDACTION_ENV_VARS"}
	disabledSettings = []string{"LIBHARNESS_REDACTION_DISABLED", "LIBEVAL_REDACTION_DISABLED"}
)

const (
	// rawFloor is the number of characters below which a value is not looked
	// for: it would be found in every other word.
	rawFloor = 4
	// encodedFloor is the number of bytes below which encoded forms are not
	// looked for: their unambiguous part would be too short.
	encodedFloor = 9
)

// DefaultEnvVars lists the environment variables whose values are redacted when
// LIBHARNESS_REDACTION_ENV_VARS does not name others.
func DefaultEnvVars() []string {
	return []string{
		"ANTHROPIC_API_KEY",
		"AWS_ACCESS_KEY_ID",
		"AWS_SECRET_ACCESS_KEY",
		"DATABASE_PASSWORD",
		"GH_TOKEN",
		"GITHUB_TOKEN",
		"JWT_SECRET",
		"MCP_TOKEN",
		"MICROSOFT_APP_ID",
		"MICROSOFT_APP_PASSWORD",
		"MICROSOFT_APP_TENANT_ID",
		"PRODUCT_LANDMARK_TOKEN",
		"SERVICE_SECRET",
		"SUPABASE_ANON_KEY",
		"SUPABASE_SERVICE_ROLE_KEY",
	}
}

type environment map[string]string

func parseEnviron(lines []string) environment {
	env := make(environment, len(lines))
	for _, line := range lines {
		if key, value, ok := strings.Cut(line, "="); ok {
			env[key] = value
		}
	}
	return env
}

// setting returns the value of the first spelling that is not empty.
func (env environment) setting(spellings []string) string {
	for _, name := range spellings {
		if env[name] != "" {
			return env[name]
		}
	}
	return ""
}

func (env environment) secrets(w warner) []secret {
	names := DefaultEnvVars()
	if list := env.setting(envVarsSettings); list != "" {
		if own := splitNames(list); len(own) > 0 {
			names = own
		} else {
			w.printf("%s names no variable; using the default list", envVarsSettings[0])
		}
	}
	var secrets []secret
	for _, name := range names {
		secrets = appendSecret(secrets, name, env[name], w)
	}
	return secrets
}

func splitNames(list string) []string {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// secret is one value to look for, and the variable it is named after.
type secret struct {
	name  string
	value string
	// encoded says whether base64, hex and percent-encoded forms are looked for.
	encoded bool
}

// appendSecret adds a value and the lines of it that must not be seen alone.
// White space around a value is not part of it: files and shells add and remove it.
func appendSecret(list []secret, name, value string, w warner) []secret {
	value = strings.TrimSpace(value)
	if value == "" {
		return list
	}
	name = placeholderName(name)
	switch {
	case utf8.RuneCountInString(value) < rawFloor:
		w.printf("the value of %s is shorter than %d characters and is not redacted", name, rawFloor)
		return list
	case len(value) < encodedFloor:
		w.printf("the value of %s is shorter than %d bytes; its base64, hex and percent-encoded forms are not redacted",
			name, encodedFloor)
	}
	if slices.ContainsFunc(list, func(s secret) bool { return s.value == value }) {
		return list
	}
	list = append(list, secret{name: name, value: value, encoded: len(value) >= encodedFloor})
	for line := range strings.SplitSeq(value, "\n") {
		if line = strings.TrimSpace(line); len(line) < len(value) && tellsAlone(line) {
			list = append(list, secret{name: name, value: line})
		}
	}
	return list
}

// tellsAlone reports whether a line of a secret is looked for by itself: diffs, listings and
// exports put something in front of every line. A short line is in many texts, and so is the frame
// of a key.
func tellsAlone(line string) bool {
	return len(line) >= encodedFloor && !strings.HasPrefix(line, "-----")
}

// placeholderName makes a name safe to be in a placeholder inside JSON.
func placeholderName(name string) string {
	safe := strings.Map(func(c rune) rune {
		if c < utf8.RuneSelf && nameChar[byte(c)] {
			return c
		}
		return '_'
	}, name)
	return cmp.Or(safe, "_")
}

// warner warns the user; with a nil writer it does nothing.
type warner struct{ w io.Writer }

func (w warner) printf(format string, args ...any) {
	if w.w != nil {
		_, _ = fmt.Fprintf(w.w, "warning: redaction: "+format+"\n", args...)
	}
}

func (w warner) disabled(ci bool) {
	text := "disabled; secrets are written as they are"
	if ci {
		text += "; this is CI: workflow artifacts of a public repository can be downloaded by anyone until their " +
			"retention ends"
	}
	w.printf("%s", text)
}
