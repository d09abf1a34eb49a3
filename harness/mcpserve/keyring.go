package mcpserve

import (
	"crypto/rand"
	"fmt"
	"net"
	"time"

	"github.com/fit-eval/fit/harness"
)

// Keyring holds the bearer tokens of one session.
type Keyring struct{ tokens []string }

// NewKeyring makes tokens for a number of participants, the lead included.
func NewKeyring(participants int) Keyring {
	k := Keyring{tokens: make([]string, participants)}
	for i := range k.tokens {
		k.tokens[i] = rand.Text() + rand.Text()
	}
	return k
}

// Secrets are the tokens by name, for the Extra secrets of a redactor.
func (k Keyring) Secrets() map[string]string {
	secrets := make(map[string]string, len(k.tokens))
	for i, token := range k.tokens {
		secrets[fmt.Sprintf("SESSION_TOKEN_%d", i+1)] = token
	}
	return secrets
}

// Config is how a server serves. The zero value is useful.
type Config struct {
	// Stdio is the command line of a program that runs Relay; where it is set, agents are told to
	// start it instead of being given the address.
	Stdio []string
	// Progress is the time between two signs of life of a call that takes long; 0 is ten seconds.
	Progress time.Duration
}

// Connect returns the function that harness.Options.Connect wants.
func (k Keyring) Connect(cfg Config) func(*harness.Dispatcher) (harness.Connector, error) {
	return func(d *harness.Dispatcher) (harness.Connector, error) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("listen for tool calls: %w", err)
		}
		server, err := serve(listener, d, k.tokens, cfg)
		if err != nil {
			_ = listener.Close() // the first error is the one to tell
			return nil, err
		}
		return server, nil
	}
}
