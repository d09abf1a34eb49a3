package redact

import (
	"bytes"
	"strings"
)

// shape is one kind of credential that is recognisable by its form.
type shape struct {
	kind string
	// prefixes begin the credential; body follows, between min and max long.
	prefixes []string
	body     *byteSet
	min, max int
	// bounded demands that the credential starts a word; exact, that it ends one.
	bounded, exact bool
	// commonInWords is set if the prefix is frequent inside ordinary words.
	commonInWords bool
	// match replaces the comparison above for shapes of several parts: it gets
	// the place of the anchor and returns what it found.
	match func(text []byte, at int) (start, end int, ok bool)
	// anchor is what to look for if it is not the beginning of a prefix.
	anchor string
	// open reports, for a shape with match, whether a text that begins like one may still become
	// one.
	open func(text []byte) bool
}

const (
	endless = 1 << 30
	// githubMin is the shortest body of a GitHub token. Their lengths have changed before; text
	// with the prefix and this length is a token.
	githubMin = 30
)

// maxShapes is at least the number of shapes.
const maxShapes = 32

// shapes lists what is looked for.
var shapes = append([]shape{
	{
		kind:     "anthropic",
		prefixes: []string{"sk-ant-"},
		body:     tokenChar,
		min:      13,
		max:      endless,
	},
	{
		kind:     "gh-pat",
		prefixes: []string{"ghp_"},
		body:     wordChar,
		min:      githubMin,
		max:      endless,
		bounded:  true,
	},
	{
		kind:     "gh-installation",
		prefixes: []string{"ghs_"},
		body:     wordChar,
		min:      githubMin,
		max:      endless,
		bounded:  true,
	},
	{
		kind:     "gh-oauth",
		prefixes: []string{"gho_"},
		body:     wordChar,
		min:      githubMin,
		max:      endless,
		bounded:  true,
	},
	{
		kind:     "gh-fine-grained",
		prefixes: []string{"github_pat_"},
		body:     wordChar,
		min:      githubMin,
		max:      endless,
		bounded:  true,
	},
	{
		kind:     "gh-b64-basic-credential",
		prefixes: []string{basicCredential},
		body:     base64Char,
		min:      8,
		max:      endless,
		bounded:  true,
	},
	{
		kind:     "gh-user",
		prefixes: []string{"ghu_"},
		body:     wordChar,
		min:      githubMin,
		max:      endless,
		bounded:  true,
	},
	{
		kind:     "gh-refresh",
		prefixes: []string{"ghr_"},
		body:     wordChar,
		min:      githubMin,
		max:      endless,
		bounded:  true,
	},
	{
		kind:     "openai",
		prefixes: []string{"sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-", "sk-or-v1-"},
		body:     tokenChar,
		min:      20,
		max:      endless,
		bounded:  true,
	},
	{
		kind:          "openai",
		prefixes:      []string{"sk-"},
		body:          alnum,
		min:           32,
		max:           endless,
		bounded:       true,
		commonInWords: true,
	},
	{
		kind:     "google",
		prefixes: []string{"AIza"},
		body:     tokenChar,
		min:      35,
		max:      endless,
		bounded:  true,
	},
	{
		kind:     "google-oauth",
		prefixes: []string{"ya29.", "GOCSPX-"},
		body:     tokenChar,
		min:      20,
		max:      endless,
		bounded:  true,
	},
	{
		kind:     "aws",
		prefixes: []string{"AKIA", "ASIA"},
		body:     upperAlnum,
		min:      16,
		max:      16,
		bounded:  true,
		exact:    true,
	},
	{
		kind: "slack",
		prefixes: []string{
			"xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-",
			"xapp-",
		},
		body:    nameChar,
		min:     10,
		max:     endless,
		bounded: true,
	},
	{
		kind:     "npm",
		prefixes: []string{"npm_"},
		body:     alnum,
		min:      36,
		max:      endless,
		bounded:  true,
	},
	{
		kind:     "pypi",
		prefixes: []string{"pypi-"},
		body:     tokenChar,
		min:      50,
		max:      endless,
		bounded:  true,
	},
	{
		kind:     "pypi",
		prefixes: []string{"pypi-AgE"},
		body:     tokenChar,
		min:      16,
		max:      endless,
		bounded:  true,
	},
	{
		kind:     "gitlab",
		prefixes: []string{"glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-", "glagent-"},
		body:     nameChar,
		min:      20,
		max:      endless,
		bounded:  true,
	},
	{
		kind:     "stripe",
		prefixes: []string{"sk_live_", "rk_live_", "sk_test_", "rk_test_"},
		body:     alnum,
		min:      16,
		max:      endless,
		bounded:  true,
	},
	{
		kind:     "huggingface",
		prefixes: []string{"hf_"},
		body:     alnum,
		min:      30,
		max:      endless,
		bounded:  true,
	},
	{
		kind:     "private-key",
		anchor:   "-BEG",
		match:    matchPrivateKey,
		prefixes: []string{keyBegin},
		open:     privateKeyIsOpen,
	},
	{
		kind:     "jwt",
		anchor:   ".eyJ",
		match:    matchJWT,
		prefixes: []string{"eyJ"},
		open:     jwtIsOpen,
	},
}, urlShapes...)

// basicCredential is the base64 of "x-access-token:".
const basicCredential = "eC1hY2Nlc3MtdG9rZW46"

// find looks for the shape whose anchor is at i. If it is not there, end is how far the comparison
// got, or 0.
func (s *shape) find(text []byte, i int) (start, end int, ok bool) {
	if s.match != nil {
		return s.match(text, i)
	}
	for _, prefix := range s.prefixes {
		if stop, ok := s.after(text, i, prefix); stop > 0 {
			return i, stop, ok
		}
	}
	return 0, 0, false
}

func (s *shape) after(text []byte, i int, prefix string) (end int, ok bool) {
	if !bytes.HasPrefix(text[i:], []byte(prefix)) || s.bounded && wordBefore(text, i) {
		return 0, false
	}
	body := i + len(prefix)
	end = s.body.run(text, body, s.max)
	if end-body < s.min || s.exact && end < len(text) && wordChar[text[end]] {
		return end, false
	}
	if s.body == base64Char {
		for n := 0; n < 2 && end < len(text) && text[end] == '='; n++ {
			end++
		}
	}
	return end, true
}

// escapeLetters follow a backslash in JSON where a space character is meant.
const escapeLetters = "bfnrt"

// wordBefore reports whether the character before i continues a word. The last
// character of an escape sequence (\n, \u000a, %0A) does not.
func wordBefore(text []byte, i int) bool {
	if i == 0 || !wordChar[text[i-1]] {
		return false
	}
	switch {
	case i >= 2 && text[i-2] == '\\' && strings.IndexByte(escapeLetters, text[i-1]) >= 0:
		return false
	case i >= 6 && text[i-6] == '\\' && text[i-5] == 'u' && hexDigit.run(text, i-4, 4) == i:
		return false
	case i >= 3 && text[i-3] == '%' && hexDigit.run(text, i-2, 2) == i:
		return false
	case text[i-1] == colourEnd:
		return !endsColour(text[:i-1])
	}
	return true
}

// colourEnd ends the escape sequences that set a terminal's colour.
const colourEnd = 'm'

// endsColour reports whether a text ends with such a sequence that lacks only its end.
func endsColour(text []byte) bool {
	text = bytes.TrimRight(text, digits+";")
	return bytes.HasSuffix(text, []byte("\x1b[")) || bytes.HasSuffix(text, []byte(`\u001b[`)) ||
		bytes.HasSuffix(text, []byte(`\u001B[`))
}

const (
	jwtPartLimit = 16 << 10
	jwtPartMin   = 5
	jwtSignature = 8
)

// matchJWT finds header.payload.signature from the ".eyJ" that begins the payload.
func matchJWT(text []byte, at int) (start, end int, ok bool) {
	start = at
	for start > 0 && at-start < jwtPartLimit && tokenChar[text[start-1]] {
		start--
	}
	// The header begins with eyJ, wherever in the word before the dot.
	head := bytes.Index(text[start:at], []byte("eyJ"))
	if head < 0 || at-start-head < jwtPartMin {
		return 0, 0, false
	}
	start += head
	dot := tokenChar.run(text, at+1, jwtPartLimit)
	if dot-at-1 < jwtPartMin || dot >= len(text) || text[dot] != '.' {
		return 0, 0, false
	}
	end = tokenChar.run(text, dot+1, endless)
	return start, end, end-dot-1 >= jwtSignature
}

func jwtIsOpen(text []byte) bool {
	const limit = 3 * jwtPartLimit
	return len(text) <= limit && nameChar.run(text, 0, endless) == len(text) && bytes.Count(text, []byte(".")) <= 2
}
