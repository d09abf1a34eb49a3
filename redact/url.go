package redact

import "bytes"

const (
	maxUserInfo  = 256
	maxParameter = 4 << 10
	// minToken is the length from which a user name without a password is taken for a token.
	minToken = 20
	// minParameter is the length from which the value of a parameter is taken for a secret.
	minParameter = 6
)

// urlShapes are the parts of URLs that give access: the user with a password or a token, and
// parameters that are named like secrets.
var urlShapes = []shape{
	{
		kind:     "url-user",
		prefixes: []string{"://"},
		body:     userInfoChar,
		match:    matchUserInfo,
		open:     func(text []byte) bool { return len(text) < maxUserInfo && userInfoEnd(text, 0) == len(text) },
	},
	{
		kind:     "url-parameter",
		prefixes: secretParameters(),
		match:    matchParameter,
		open: func(text []byte) bool {
			return len(text) < maxParameter &&
				parameterChar.run(text, bytes.IndexByte(text, '=')+1, endless) == len(text)
		},
	},
}

var (
	userInfoChar  = setOf(lowers, uppers, digits, "-._~!$&*+=:%")
	parameterChar = setOf(lowers, uppers, digits, "-._~!$*+/:%=")
)

// secretParameters lists how the parameters begin, as they are in a URL, in JSON and in HTML.
func secretParameters() []string {
	var all []string
	for _, name := range []string{
		"key", "api_key", "apikey", "api-key", "token", "access_token", "auth_token",
		"id_token", "refresh_token", "auth", "secret", "client_secret", "password", "passwd", "sig", "signature",
		"X-Amz-Signature", "X-Amz-Credential", "X-Amz-Security-Token", "X-Goog-Signature",
	} {
		for _, before := range []string{"?", "&", `\u0026`[4:], "amp;"} {
			all = append(all, before+name+"=")
		}
	}
	return all
}

// matchUserInfo finds the text between the scheme and the host of the URL whose "://" is at i.
func matchUserInfo(text []byte, i int) (start, end int, ok bool) {
	start = i + len("://")
	end = userInfoEnd(text, i)
	if end >= len(text) || text[end] != '@' {
		return 0, 0, false
	}
	info := text[start:end]
	return start, end, bytes.IndexByte(info, ':') >= 0 && len(info) > 2 || len(info) >= minToken
}

// userInfoEnd returns the end of the user's part of a URL, if it has one.
func userInfoEnd(text []byte, i int) int {
	return userInfoChar.run(text, min(len(text), i+len("://")), maxUserInfo)
}

// matchParameter finds the value of the parameter that begins at i.
func matchParameter(text []byte, i int) (start, end int, ok bool) {
	for _, prefix := range secretPrefixes {
		if bytes.HasPrefix(text[i:], prefix) {
			start = i + len(prefix)
			end = parameterChar.run(text, start, maxParameter)
			return start, end, end-start >= minParameter
		}
	}
	return 0, 0, false
}

var secretPrefixes = func() (all [][]byte) {
	for _, prefix := range secretParameters() {
		all = append(all, []byte(prefix))
	}
	return all
}()
