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
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/fit-eval/fit/internal/atomicfile"
)

// hubKeys are the private keys of a hub, in a file that only its user can read.
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
			err = atomicfile.WriteSynced(name, 0o600, content)
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
		NotBefore:    time.Now().Add(-48 * time.Hour), // clocks differ, and only the fingerprint counts
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
