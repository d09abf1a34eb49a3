package fleet

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// joinURL is the address of a hub: fit://TOKEN@host:port, with ?cert=HEX for one that has a
// certificate. The token is the seed of a key pair; the hub knows only its public half, and what is
// sent is a signature.
type joinURL struct {
	Address     string // host:port
	Token       string
	Fingerprint string // SHA-256 of the hub's certificate, in hex; empty: no TLS
	Role        string // for messages: the hub decides what a key may do
	// External says that the hub is a NATS server that fit did not start, and TLS that it has a
	// certificate which the system trusts.
	External, TLS bool
	// JWT is what such a server wants to see of a key if it is set up with nsc.
	JWT string
}

func (j joinURL) String() string {
	query := url.Values{}
	for name, value := range map[string]string{"cert": j.Fingerprint, "role": j.Role, "jwt": j.JWT} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for name, set := range map[string]bool{"external": j.External, "tls": j.TLS} {
		if set {
			query.Set(name, "1")
		}
	}
	u := url.URL{
		Scheme:   "fit",
		User:     url.User(j.Token),
		Host:     j.Address,
		RawQuery: query.Encode(),
	}
	return u.String()
}

// parseJoinURL reads a join URL. Errors do not repeat it: it holds the token.
func parseJoinURL(text string) (joinURL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "fit" {
		return joinURL{}, errors.New("not a URL of a fleet: use the file that fit fleet serve or fit fleet key wrote, its fit://… URL, or nats://…")
	}
	j := joinURL{
		Address:     u.Host,
		Token:       u.User.Username(),
		Fingerprint: strings.ToLower(u.Query().Get("cert")),
		Role:        u.Query().Get("role"),
		External:    u.Query().Get("external") != "",
		TLS:         u.Query().Get("tls") != "",
		JWT:         u.Query().Get("jwt"),
	}
	if _, _, err := net.SplitHostPort(j.Address); err != nil {
		return joinURL{}, fmt.Errorf("join URL: %q is not host:port", j.Address)
	}
	if key, err := nkeys.FromSeed([]byte(j.Token)); err != nil {
		return joinURL{}, errors.New("join URL: the token is incomplete; copy the file again")
	} else if key.Wipe(); j.Fingerprint != "" {
		if sum, err := hex.DecodeString(j.Fingerprint); err != nil || len(sum) != sha256.Size {
			return joinURL{}, errors.New("join URL: the certificate's fingerprint is incomplete; copy the file " +
				"again")
		}
	}
	return j, nil
}

// redactedURL returns a URL of a hub as messages show it.
func redactedURL(text string) string {
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host
	}
	return "the hub"
}

// identity is the key pair of a member. Where a URL has none, as for a server that knows users by
// password, it is made for the connection.
type identity struct {
	nkeys.KeyPair
	public string
}

func newIdentity(seed string) (identity, error) {
	pair, err := nkeys.FromSeed([]byte(seed))
	if seed == "" {
		pair, err = nkeys.CreateUser()
	}
	if err != nil {
		return identity{}, err
	}
	public, err := pair.PublicKey()
	return identity{KeyPair: pair, public: public}, err
}

// connect connects to a hub: fit:// to one that fit fleet serve started, nats:// or tls:// to an
// existing cluster.
func connect(ctx context.Context, hub, name string, insecure bool) (*nats.Conn, identity, error) {
	options := []nats.Option{
		nats.Name(name),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(200 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 200*time.Millisecond),
		nats.PingInterval(3 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.Timeout(5 * time.Second),
		nats.ReconnectBufSize(-1), // what cannot be sent now fails now: the sender decides
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}
	if deadline, ok := ctx.Deadline(); ok {
		options = append(options, nats.Timeout(min(5*time.Second, time.Until(deadline))))
	}
	address, join := hub, joinURL{External: true}
	var err error
	if !strings.HasPrefix(hub, "nats://") && !strings.HasPrefix(hub, "tls://") {
		if join, err = parseJoinURL(hub); err != nil {
			return nil, identity{}, err
		}
		address = "nats://" + join.Address
	}
	own, err := newIdentity(join.Token)
	if err != nil {
		return nil, identity{}, err
	}
	options = append(options, nats.CustomInboxPrefix(inboxPrefix(own.public)))
	switch {
	case join.JWT != "":
		options = append(options, nats.UserJWT(func() (string, error) { return join.JWT, nil }, own.Sign))
	case join.Token != "":
		options = append(options, nats.Nkey(own.public, own.Sign))
	}
	switch {
	case join.Fingerprint != "":
		options = append(options, nats.Secure(pinned(join.Fingerprint)))
	case join.TLS:
		options = append(options, nats.Secure())
	}
	nc, err := nats.Connect(address, options...)
	if err == nil && join.External && !insecure {
		err = secured(nc)
	}
	if err != nil {
		if nc != nil {
			nc.Close()
		}
		return nil, identity{}, connectError(hub, err)
	}
	return nc, own, nil
}

// errInsecure is returned for a server whose other users cannot be trusted.
var errInsecure = errors.New("is not a place for a fleet")

// secured makes sure that a server asks who its users are, and that nobody between can read along.
func secured(nc *nats.Conn) error {
	host, _, err := net.SplitHostPort(nc.ConnectedAddr())
	switch _, tlsErr := nc.TLSConnectionState(); {
	case err != nil:
		return err
	case !nc.AuthRequired():
		return fmt.Errorf("it asks nobody who they are, so every program that reaches it could forge results: it %w; "+
			"see fit fleet permissions, or accept it with --insecure", errInsecure)
	case tlsErr != nil && !isLoopback(host):
		return fmt.Errorf("it has no TLS: it %w; set it up, or accept it with --insecure", errInsecure)
	}
	return nil
}

// errRefused is returned for a hub that no longer accepts the key of a member: the connection ends
// for good then.
var errRefused = errors.New("the hub no longer accepts this key: it was revoked; fit fleet key add makes another one")

// refused reports whether the hub has ended the connection for good.
func (h *Hub) refused() bool { return h.nc.IsClosed() }

// errFingerprint is returned for a hub with another certificate than the join URL says.
var errFingerprint = errors.New("its certificate is not the one of the join URL")

// pinned trusts only the certificate with a fingerprint, whoever signed it.
func pinned(fingerprint string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // replaced by the comparison below, which is stricter
		VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
			if len(raw) == 0 || certFingerprint(raw[0]) != fingerprint {
				return errFingerprint
			}
			return nil
		},
	}
}

func certFingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// connectError returns a one-line error that says why a hub cannot be used.
func connectError(hub string, err error) error {
	shown := redactedURL(hub)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired),
		strings.Contains(strings.ToLower(err.Error()), "authorization violation"):
		return fmt.Errorf("%s refused the token; copy the file that fit fleet serve writes, unless its key was revoked",
			shown)
	case errors.Is(err, errInsecure):
		return fmt.Errorf("%s: %w", shown, err)
	case errors.Is(err, errFingerprint):
		return fmt.Errorf("%s: %w; copy the file again; if this persists, someone may be intercepting the "+
			"connection",
			shown, errFingerprint)
	case errors.Is(err, nats.ErrSecureConnRequired), errors.As(err, new(*tls.CertificateVerificationError)) &&
		strings.HasPrefix(hub, "fit://"):
		return fmt.Errorf("%s wants TLS, and the join URL has no certificate; copy the file again", shown)
	case errors.Is(err, nats.ErrSecureConnWanted):
		return fmt.Errorf("%s has no TLS, and the join URL has a certificate; copy the file again", shown)
	case errors.Is(err, nats.ErrNoServers):
		return fmt.Errorf("connect to %s: nothing answers; is fit fleet serve running there?", shown)
	default:
		return fmt.Errorf("connect to %s: %w", shown, err)
	}
}
