package claudecode

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
)

const (
	keyVariable   = "ANTHROPIC_API_KEY"
	tokenVariable = "ANTHROPIC_AUTH_TOKEN"
	oauthVariable = "CLAUDE_CODE_OAUTH_TOKEN"
	urlVariable   = "ANTHROPIC_BASE_URL"
	// headersVariable holds headers that the program adds to its requests.
	headersVariable = "ANTHROPIC_CUSTOM_HEADERS"

	vendorURL = "https://api.anthropic.com"

	// noKey is the program's key if another endpoint is used and no key is set: it refuses to start
	// without one.
	noKey = "no-key-needed"

	credentials = ".credentials.json"
)

// login is how the program will be logged in.
type login struct {
	mode string // agent.AuthSubscription or agent.AuthAPIKey
	// variables are put into the child's environment.
	variables map[string]string
	// file is the login to copy into the session's home; empty if there is none.
	file string
	// secret is true if the child gets a credential that is worth stealing.
	secret bool
}

// chooseLogin decides how the program is logged in, through the gateway if there is one.
func chooseLogin(cfg agent.Config) (login, error) {
	chosen, err := directLogin(cfg)
	if err != nil || cfg.Seat == nil {
		return chosen, err
	}
	return chosen.through(cfg.Seat), nil
}

// through returns the login through the gateway: a key stays there, and the login of a plan, which
// the program sends to the base URL, is passed on.
func (l login) through(seat *gateway.Seat) login {
	l.variables = maps.Clone(l.variables)
	l.variables[urlVariable] = seat.URL
	if l.mode == agent.AuthSubscription {
		l.variables[headersVariable] = gateway.TokenHeader + ": " + seat.Token
		return l
	}
	delete(l.variables, tokenVariable)
	l.variables[keyVariable], l.secret = seat.Token, false
	return l
}

// Upstreams implements agent.Routed.
func (*Agent) Upstreams(cfg agent.Config) ([]gateway.Upstream, error) {
	login, err := directLogin(cfg)
	if err != nil {
		return nil, err
	}
	to := gateway.Upstream{
		Protocol: gateway.Anthropic,
		URL:      gateway.Versioned(cmp.Or(login.variables[urlVariable], vendorURL)),
		Login:    login.mode == agent.AuthSubscription,
	}
	switch {
	case !login.secret || to.Login:
	case login.variables[tokenVariable] != "":
		to.Header = gateway.Bearer(login.variables[tokenVariable])
	default:
		to.Header = gateway.APIKey(login.variables[keyVariable])
	}
	return []gateway.Upstream{to}, nil
}

// directLogin decides between the plan and a key: the plan if a login is found and no other
// endpoint is asked for, unless the caller decides.
func directLogin(cfg agent.Config) (login, error) {
	url := cmp.Or(cfg.ModelURL, agent.Getenv(cfg.Environ, urlVariable))
	mode := cfg.Auth
	if mode == "" {
		mode = agent.AuthAPIKey
		if url == "" && hasSubscription(cfg.Environ) {
			mode = agent.AuthSubscription
		}
	}
	switch mode {
	case agent.AuthSubscription:
		if url != "" {
			return login{}, agent.Refuse(agentID,
				"--auth subscription works with the vendor's own endpoint only; leave out the model URL, or use "+
					"--auth apikey")
		}
		return subscription(cfg.Environ)
	case agent.AuthAPIKey:
		return apiKey(cfg, url)
	default:
		return login{}, agent.Refuse(agentID, "unknown --auth %q; use subscription or apikey", mode)
	}
}

func subscription(environ []string) (login, error) {
	chosen := login{mode: agent.AuthSubscription, variables: map[string]string{}, secret: true}
	if token := agent.Getenv(environ, oauthVariable); token != "" {
		chosen.variables[oauthVariable] = token
		return chosen, nil
	}
	if chosen.file = loginFile(environ); chosen.file == "" {
		return login{}, errors.New("no Claude login found; run claude and log in, or use --auth apikey with " +
			keyVariable)
	}
	return chosen, nil
}

func apiKey(cfg agent.Config, url string) (login, error) {
	chosen := login{mode: agent.AuthAPIKey, variables: map[string]string{}}
	if url != "" {
		chosen.variables[urlVariable] = url
	}
	for _, name := range []string{keyVariable, tokenVariable} {
		if value := agent.Getenv(cfg.Environ, name); value != "" {
			chosen.variables[name] = value
			chosen.secret = true
			return chosen, nil // exactly one of them
		}
	}
	if cfg.ModelURL == "" {
		return login{}, errors.New(keyVariable +
			" is not set; set it, log in with claude and use --auth subscription, or set --model-url")
	}
	chosen.variables[keyVariable] = noKey
	return chosen, nil
}

// loginOf says what credentials the caller has.
func loginOf(environ []string) string {
	switch {
	case hasSubscription(environ):
		return agent.AuthSubscription
	case agent.Getenv(environ, keyVariable) != "" || agent.Getenv(environ, tokenVariable) != "":
		return agent.AuthAPIKey
	}
	return ""
}

func hasSubscription(environ []string) bool {
	return agent.Getenv(environ, oauthVariable) != "" || loginFile(environ) != ""
}

// LoginFile implements agent.loginKeeper.
func (*Agent) LoginFile(environ []string) string {
	return agent.UserFile(environ, "CLAUDE_CONFIG_DIR", ".claude", credentials)
}

// loginFile returns the file that holds a login to a plan, or nothing.
func loginFile(environ []string) string {
	path := New().LoginFile(environ)
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	var content struct {
		OAuth struct {
			AccessToken string `json:"accessToken"`
		} `json:"claudeAiOauth"`
	}
	if json.Unmarshal(data, &content) != nil || content.OAuth.AccessToken == "" {
		return ""
	}
	return path
}

// agrees checks what the program says about its credentials against what was chosen, so that nobody
// pays with the wrong account.
func (l login) agrees(apiKeySource string) error {
	usesKey := apiKeySource != "" && apiKeySource != "none"
	switch {
	case l.mode == agent.AuthSubscription && usesKey:
		return fmt.Errorf("asked to run on the subscription, but the agent took its key from %s; stopped before it "+
			"costs money", apiKeySource)
	case l.variables[keyVariable] != "" && apiKeySource != "" && apiKeySource != keyVariable:
		return fmt.Errorf("asked to run on the key in %s, but the agent took its credentials from %s; stopped",
			keyVariable, apiKeySource)
	}
	return nil
}
