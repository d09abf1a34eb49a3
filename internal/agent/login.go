package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// loginKeeper is an agent whose program keeps the user's login in a file, of which a session may
// get a copy. The program can print that copy, so what is secret in it is redacted like the
// variables among Info.Credentials.
type loginKeeper interface {
	// LoginFile returns the path of the JSON file, whether it exists or not; empty if it is
	// unknown.
	LoginFile(environ []string) string
}

// UserFile returns a file that a program keeps for its user: in the directory that a variable
// names, else in its usual one below the user's home; empty where there is neither.
func UserFile(environ []string, variable, usual, name string) string {
	if dir := Getenv(environ, variable); dir != "" {
		return filepath.Join(dir, name)
	}
	if home := Getenv(environ, "HOME"); home != "" {
		return filepath.Join(home, usual, name)
	}
	return ""
}

// CopyLogin copies a login into the home of a session. A copy that is there already was refreshed
// by an earlier process of the same session and stays. If this process is killed, the next start
// removes the copy.
func CopyLogin(cfg Config, from, to string) error {
	if info, err := os.Lstat(to); err == nil && info.Mode().IsRegular() {
		return nil
	}
	data, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the login in %s has gone; log in again", from)
	}
	if err != nil {
		return fmt.Errorf("copy login: %w", err)
	}
	return WriteLogin(cfg, to, data)
}

// WriteLogin puts a login into the home of a session. If this process is killed, the next start
// removes it.
func WriteLogin(cfg Config, to string, login []byte) error {
	if err := noteCopy(cfg.Environ, to); err != nil {
		return fmt.Errorf("write login: %w", err)
	}
	return WriteHome(cfg.Home, to, login)
}

// minSecret is the length from which the value of a field that is named like a secret counts as
// one: redacting shorter ones would damage everything that is written.
const minSecret = 8

// maxLoginFile is more than any file of logins has.
const maxLoginFile = 1 << 20

// loginSecrets adds the secrets in a file of logins, under names that a reader of the trace
// understands. A file that is missing or not JSON has no known secrets.
func loginSecrets(into map[string]string, prefix, path string) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxLoginFile {
		return
	}
	data, err := os.ReadFile(path)
	var content any
	if err != nil || json.Unmarshal(data, &content) != nil {
		return
	}
	collectSecrets(into, prefix, "", content)
}

// collectSecrets walks through a document; key is the last one on the way to the value.
func collectSecrets(into map[string]string, name, key string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for inner, v := range value {
			collectSecrets(into, name+"_"+strings.ToUpper(inner), inner, v)
		}
	case []any:
		for i, v := range value {
			collectSecrets(into, name+"_"+strconv.Itoa(i+1), key, v)
		}
	case string:
		if len(value) >= minSecret && namesSecret(key) {
			into[name] = value
		}
	}
}

func namesSecret(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc([]string{"token", "key", "secret", "password", "credential"}, func(part string) bool {
		return strings.Contains(key, part)
	})
}
