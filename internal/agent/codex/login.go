package codex

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
)

const (
	keyVariable    = "CODEX_API_KEY"
	vendorVariable = "OPENAI_API_KEY"

	vendorURL = "https://api.openai.com"

	// noKey is the program's key if another endpoint is used and no key is set: it refuses to start
	// without one.
	noKey = "no-key-needed"

	loginName = "auth.json"
)

// login is how the program will be logged in.
type login struct {
	mode string // agent.AuthSubscription or agent.AuthAPIKey
	key  string // put into the child's environment; empty with a plan
	file string // the login to copy into the session's home; empty if there is none
	// secret is true if the child gets a credential that is worth stealing.
	secret bool
}

// chooseLogin decides how the program is logged in, through the gateway if there is one.
func chooseLogin(cfg agent.Config) (login, error) {
	chosen, err := directLogin(cfg)
	if err == nil && cfg.Seat != nil {
		chosen.key, chosen.secret = cfg.Seat.Token, false
	}
	return chosen, err
}

// Upstreams implements agent.Routed. The program sends the login of a plan to the plan's own
// service, wherever its models are.
func (*Agent) Upstreams(cfg agent.Config) ([]gateway.Upstream, error) {
	login, err := directLogin(cfg)
	if err != nil {
		return nil, err
	}
	if login.mode == agent.AuthSubscription {
		return nil, errors.New("codex sends the login of a plan to the vendor's own service only")
	}
	to := gateway.Upstream{
		Protocol: gateway.Responses,
		URL:      gateway.Versioned(cmp.Or(cfg.ModelURL, vendorURL)),
	}
	if login.secret {
		to.Header = gateway.Bearer(login.key)
	}
	return []gateway.Upstream{to}, nil
}

// directLogin decides between a plan and a key: the plan if a login is found, no key was set for
// this program alone, and no other endpoint is asked for, unless the caller decides.
func directLogin(cfg agent.Config) (login, error) {
	mode := cfg.Auth
	if mode == "" {
		mode = agent.AuthAPIKey
		if cfg.ModelURL == "" && loginOf(cfg.Environ) == agent.AuthSubscription {
			mode = agent.AuthSubscription
		}
	}
	switch mode {
	case agent.AuthSubscription:
		if cfg.ModelURL != "" {
			return login{}, agent.Refuse(agentID,
				"--auth subscription works with the vendor's own endpoint only; leave out the model URL, or use "+
					"--auth apikey")
		}
		file := subscriptionFile(cfg.Environ)
		if file == "" {
			return login{}, errors.New("no login of codex found; run codex login, or use --auth apikey with " +
				keyVariable)
		}
		return login{mode: mode, file: file, secret: true}, nil
	case agent.AuthAPIKey:
		if key := keyInEnvironment(cfg.Environ); key != "" {
			return login{mode: mode, key: key, secret: true}, nil
		}
		if cfg.ModelURL == "" { // a key that is stored for the vendor is not shown to anybody else
			if stored, _ := storedLogin(cfg.Environ); stored.Key != "" {
				return login{mode: mode, key: stored.Key, secret: true}, nil
			}
			return login{}, fmt.Errorf("%s is not set; set it, log in with codex login, or set --model-url",
				keyVariable)
		}
		return login{mode: mode, key: noKey}, nil
	default:
		return login{}, agent.Refuse(agentID, "unknown --auth %q; use subscription or apikey", mode)
	}
}

func keyInEnvironment(environ []string) string {
	return cmp.Or(agent.Getenv(environ, keyVariable), agent.Getenv(environ, vendorVariable))
}

// loginOf says what credentials the caller has.
func loginOf(environ []string) string {
	stored, _ := storedLogin(environ)
	switch {
	case agent.Getenv(environ, keyVariable) != "":
		return agent.AuthAPIKey
	case stored.Tokens.AccessToken != "":
		return agent.AuthSubscription
	case keyInEnvironment(environ) != "" || stored.Key != "":
		return agent.AuthAPIKey
	}
	return ""
}

// authFile is the program's record of a login: a key, or the tokens of a plan.
type authFile struct {
	Key    string `json:"OPENAI_API_KEY"`
	Tokens struct {
		AccessToken string `json:"access_token"`
	} `json:"tokens"`
}

// LoginFile implements agent.loginKeeper.
func (*Agent) LoginFile(environ []string) string {
	return agent.UserFile(environ, "CODEX_HOME", ".codex", loginName)
}

// storedLogin reads the login that the user has given to the program.
func storedLogin(environ []string) (stored authFile, path string) {
	path = New().LoginFile(environ)
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &stored) != nil {
		return authFile{}, ""
	}
	return stored, path
}

// subscriptionFile returns the file that holds a login to a plan, or nothing.
func subscriptionFile(environ []string) string {
	if stored, path := storedLogin(environ); stored.Tokens.AccessToken != "" {
		return path
	}
	return ""
}

// install puts only the user's login into the program's home. With another endpoint the provider's
// entry names the variable that holds the key; the vendor's own endpoint uses the key in the file,
// because the app server reads no key from the environment. An existing login was refreshed by an
// earlier process of the same session and stays.
func (l login) install(cfg agent.Config, codexHome string) error {
	if cfg.ModelURL != "" {
		return nil
	}
	to := filepath.Join(codexHome, loginName)
	if l.mode != agent.AuthAPIKey {
		return agent.CopyLogin(cfg, l.file, to)
	}
	data, err := json.Marshal(map[string]string{"OPENAI_API_KEY": l.key})
	if err != nil {
		return fmt.Errorf("write login: %w", err)
	}
	return agent.WriteLogin(cfg, to, data)
}
