package fleet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// ServerConfig says how a hub is started.
type ServerConfig struct {
	// Listen is host:port. Anything but a loopback address gets TLS.
	Listen string
	// Dir keeps the token, the certificate and the streams, so that a hub that is started again is
	// the same hub.
	Dir string
	// Public is the address that the join URL names; empty is the one that is listened on.
	Public string
}

// Server is an embedded hub.
type Server struct {
	nats *server.Server
	join joinURL
}

// maxMessage bounds a message; files travel in chunks.
const maxMessage = 1 << 20

// StartServer starts a hub.
func StartServer(cfg ServerConfig) (*Server, error) {
	host, portText, err := net.SplitHostPort(cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: want host:port", cfg.Listen)
	}
	port, err := strconv.Atoi(portText)
	if err != nil || port < 0 || port > 65535 {
		return nil, fmt.Errorf("listen on %q: want a port from 0 to 65535", cfg.Listen)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the hub's directory: %w", err)
	}
	secrets, err := hubSecrets(cfg.Dir)
	if err != nil {
		return nil, err
	}
	options := &server.Options{
		ServerName: "fit-fleet",
		Host:       host,
		Port:       port,
		JetStream:  true,
		StoreDir:   filepath.Join(cfg.Dir, "jetstream"),
		MaxPayload: maxMessage,
		NoSigs:     true,
		NoLog:      true,
		Nkeys:      []*server.NkeyUser{{Nkey: secrets.public}},
		MaxConn:    64 << 10,
	}
	join := joinURL{Token: secrets.Seed}
	if !isLoopback(host) {
		if options.TLSConfig, join.Fingerprint, err = secrets.tls(); err != nil {
			return nil, err
		}
		options.TLS, options.TLSTimeout = true, 5
	}
	hub, err := server.NewServer(options)
	if err != nil {
		return nil, fmt.Errorf("start the hub: %w", err)
	}
	go hub.Start()
	if !hub.ReadyForConnections(15 * time.Second) {
		hub.Shutdown()
		return nil, fmt.Errorf("start the hub: %s is not free, or %s cannot be used", cfg.Listen, cfg.Dir)
	}
	join.Address = hub.Addr().String()
	if cfg.Public != "" {
		join.Address = cfg.Public
	}
	return &Server{nats: hub, join: join}, nil
}

// URL is the join URL of the hub. It holds the token.
func (s *Server) URL() string { return s.join.String() }

// Close ends the hub; its streams stay on disk.
func (s *Server) Close() {
	s.nats.Shutdown()
	s.nats.WaitForShutdown()
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// hubKeys are what a hub keeps to itself, in a file that only its user can read.
type hubKeys struct {
	Seed string `json:"seed"`
	Cert string `json:"cert"`
	Key  string `json:"key"`

	public string
}

// hubSecrets reads the keys of a hub, or makes them.
func hubSecrets(dir string) (*hubKeys, error) {
	name := filepath.Join(dir, "keys.json")
	content, err := os.ReadFile(name)
	keys := &hubKeys{}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if keys, err = newHubKeys(); err != nil {
			return nil, err
		}
		if content, err = json.Marshal(keys); err == nil {
			err = os.WriteFile(name, content, 0o600)
		}
	case err == nil:
		err = json.Unmarshal(content, keys)
	}
	if err != nil {
		return nil, fmt.Errorf("keys of the hub in %s: %w", name, err)
	}
	pair, err := nkeys.FromSeed([]byte(keys.Seed))
	if err == nil {
		keys.public, err = pair.PublicKey()
	}
	if err != nil {
		return nil, fmt.Errorf("keys of the hub in %s: %w", name, err)
	}
	return keys, nil
}

func newHubKeys() (*hubKeys, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	seed, err := pair.Seed()
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "fit fleet"},
		NotBefore:    time.Now().Add(-48 * time.Hour), // clocks differ, and the fingerprint is what counts
		NotAfter:     time.Now().AddDate(20, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return &hubKeys{
		Seed: string(seed),
		Cert: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		Key:  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
	}, nil
}

func (k *hubKeys) tls() (*tls.Config, string, error) {
	pair, err := tls.X509KeyPair([]byte(k.Cert), []byte(k.Key))
	if err != nil {
		return nil, "", fmt.Errorf("certificate of the hub: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13},
		certFingerprint(pair.Certificate[0]), nil
}
