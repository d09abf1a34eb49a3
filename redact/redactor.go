package redact

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// Config says where secrets come from. The zero value finds shapes only.
type Config struct {
	// Environ holds KEY=value lines. The named secrets and the settings
	// LIBHARNESS_REDACTION_ENV_VARS and LIBHARNESS_REDACTION_DISABLED (also
	// spelled LIBEVAL_…) are read from here. If a key has several lines, the last counts.
	Environ []string
	// Extra are more named secrets, from name to value: the environment of a
	// task, a bearer token of this session.
	Extra map[string]string
	// Disable turns redaction off, with the same warning as the setting.
	Disable bool
	// Warn receives one line for each thing a user should know; nil discards them.
	Warn io.Writer
}

// A Redactor replaces secrets with placeholders. It is immutable, so its methods may be called from
// many goroutines.
type Redactor struct {
	enabled bool
	warn    io.Writer
	secrets []secret
	index   *index
}

// New returns a Redactor for the secrets in the environment as it is now.
func New(c Config) *Redactor {
	env := parseEnviron(c.Environ)
	w := warner{c.Warn}
	if c.Disable || env.setting(disabledSettings) == "1" {
		w.disabled(env["CI"] == "true")
		return &Redactor{warn: c.Warn}
	}
	secrets := env.secrets(w)
	secrets = appendSecrets(secrets, c.Extra, w)
	return &Redactor{
		enabled: true,
		warn:    c.Warn,
		secrets: secrets,
		index:   newIndex(secrets),
	}
}

// Enabled reports whether anything is redacted at all.
func (r *Redactor) Enabled() bool { return r != nil && r.enabled }

// With returns a Redactor with the same settings that knows more secrets.
func (r *Redactor) With(extra map[string]string) *Redactor {
	if !r.Enabled() || len(extra) == 0 {
		return r
	}
	secrets := appendSecrets(slices.Clone(r.secrets), extra, warner{r.warn})
	return &Redactor{
		enabled: true,
		warn:    r.warn,
		secrets: secrets,
		index:   newIndex(secrets),
	}
}

// Bytes redacts plain text. It returns p itself when nothing is found, and
// never writes to p.
func (r *Redactor) Bytes(p []byte) []byte {
	if !r.Enabled() {
		return p
	}
	return r.rewrite(p, false)
}

// String is Bytes for strings.
func (r *Redactor) String(s string) string {
	if !r.Enabled() || s == "" {
		return s
	}
	// The bytes are only read, and rewrite returns a new slice if it changes
	// anything, so the string may be looked at in place.
	p := unsafe.Slice(unsafe.StringData(s), len(s))
	out := r.rewrite(p, false)
	if len(out) == len(p) && unsafe.SliceData(out) == unsafe.SliceData(p) {
		return s
	}
	return string(out)
}

// Cut redacts a text and returns at most limit bytes of it. A text must never be cut first: what is
// left of a secret is no longer recognised. No character and no placeholder is divided.
func (r *Redactor) Cut(text string, limit int) string {
	text = r.String(text)
	if len(text) <= limit {
		return text
	}
	cut := max(0, limit)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	if open := strings.LastIndex(text[:cut], placeholderMark[:1]); open >= 0 {
		if rest := text[open:]; strings.HasPrefix(rest, placeholderMark) && cut-open < strings.IndexByte(rest, ']')+1 {
			cut = open
		}
	}
	return text[:cut]
}

// JSON redacts one JSON value or line of NDJSON, keys as well as values. What
// was valid JSON stays valid: a secret is replaced inside its string, along
// escape sequences; a number that contains a secret of 9 or more digits becomes
// a string; other numbers, true, false and null pass. What is not JSON is
// treated as plain text. It returns p itself when nothing is found.
func (r *Redactor) JSON(p []byte) []byte {
	if !r.Enabled() {
		return p
	}
	return r.rewrite(p, true)
}

// rewrite repeats the search on its own result, because a placeholder is a word
// boundary where there may have been none before.
func (r *Redactor) rewrite(p []byte, asJSON bool) []byte {
	const rounds = 4
	for range rounds {
		edits := r.edits(p, asJSON)
		if len(edits) == 0 {
			break
		}
		p = splice(p, edits)
	}
	return p
}

// edits lists what to replace in p, in order and without overlap.
func (r *Redactor) edits(p []byte, asJSON bool) []edit {
	spans := r.index.find(p)
	if len(spans) == 0 {
		return nil
	}
	spans = r.index.union(r.index.keepPlaceholders(p, spans))
	if len(spans) == 0 {
		return nil
	}
	if asJSON && json.Valid(p) {
		return r.index.editJSON(p, spans)
	}
	return r.index.editPlain(p, spans)
}

// edit replaces text[start:end] by with.
type edit struct {
	start, end int
	with       string
}

func splice(p []byte, edits []edit) []byte {
	var out bytes.Buffer
	out.Grow(len(p))
	at := 0
	for _, e := range edits {
		out.Write(p[at:e.start])
		out.WriteString(e.with)
		at = e.end
	}
	out.Write(p[at:])
	return out.Bytes()
}

// appendSecrets adds named values in the order of their names, so that equal
// inputs give equal placeholders.
func appendSecrets(list []secret, extra map[string]string, w warner) []secret {
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		list = appendSecret(list, name, extra[name], w)
	}
	return list
}
