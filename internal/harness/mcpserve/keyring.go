package mcpserve

import (
	"crypto/rand"
	"fmt"
	"net"
	"time"

	"github.com/fit-eval/fit/internal/harness"
)

// Keyring holds the bearer tokens of one session, which are used with Config.HTTP only.
type Keyring struct{ tokens []string }

// NewKeyring makes tokens for a number of participants, the lead included.
func NewKeyring(participants int) Keyring {
	k := Keyring{tokens: make([]string, participants)}
	for i := range k.tokens {
		k.tokens[i] = rand.Text() + rand.Text()
	}
	return k
}

// Secrets returns the tokens by name, for the Extra secrets of a redactor.
func (k Keyring) Secrets() map[string]string {
	secrets := make(map[string]string, len(k.tokens))
	for i, token := range k.tokens {
		secrets[fmt.Sprintf("SESSION_TOKEN_%d", i+1)] = token
	}
	return secrets
}

// Config configures a server. The zero value is useful.
type Config struct {
	// HTTP gives agents the address of a server and a token, in place of a program to start.
	HTTP bool
	// Progress is the time between two progress reports of a long call; 0 is ten seconds.
	Progress time.Duration
}

// Connect returns a function for harness.Options.Connect.
func (k Keyring) Connect(cfg Config) func(*harness.Dispatcher) (harness.Connector, error) {
	if cfg.Progress <= 0 {
		cfg.Progress = defaultProgress
	}
	return func(d *harness.Dispatcher) (harness.Connector, error) {
		s := &server{
			dispatcher: d,
			endpoints:  map[string]*endpoint{},
			conns:      map[net.Conn]bool{},
		}
		names := d.Participants()
		if len(names) > len(k.tokens) {
			return nil, fmt.Errorf("the session has %d participants and %d tokens", len(names), len(k.tokens))
		}
		for i, name := range names {
			s.endpoints[name] = newEndpoint(d, name, k.tokens[i], cfg)
		}
		listen := s.listenSockets
		if cfg.HTTP {
			listen = s.listenHTTP
		}
		if err := listen(); err != nil {
			_ = s.Close() // the first error is the one to report
			return nil, fmt.Errorf("listen for tool calls: %w", err)
		}
		return s, nil
	}
}
