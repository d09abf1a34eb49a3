package fleet

import (
	"bytes"
	"context"
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
	"slices"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/fit-eval/fit/internal/atomicfile"
	"github.com/fit-eval/fit/internal/jsonlines"
)

// Roles of the members of a fleet.
const (
	RoleCoordinator = "coordinator"
	RoleWorker      = "worker"
	RoleObserver    = "observer"
)

// Member is one key of a fleet: whoever has it has the rights of its role.
type Member struct {
	Name string `json:"name"`
	Role string `json:"role"`
	Seed string `json:"seed"`
}

// Key returns the public half of a member's key.
func (m Member) Key() (string, error) {
	pair, err := nkeys.FromSeed([]byte(m.Seed))
	if err != nil {
		return "", err
	}
	return pair.PublicKey()
}

// hubKeys are the private keys of a hub, in a file that only its user can read.
type hubKeys struct {
	Seed    string   `json:"seed,omitempty"` // of a hub from before there were roles
	Cert    string   `json:"cert"`
	Key     string   `json:"key"`
	Members []Member `json:"members"`
}

const keysFile = "keys.json"

// hubSecrets reads the keys of a hub, or makes them: one for each role.
func hubSecrets(dir string) (*hubKeys, error) {
	keys, err := changeKeys(dir, func(*hubKeys) error { return nil })
	if err != nil {
		return nil, fmt.Errorf("keys of the hub in %s: %w", filepath.Join(dir, keysFile), err)
	}
	return keys, nil
}

// changeKeys reads the keys of a hub, changes them, and writes them if they differ. Those of a new
// hub are made.
func changeKeys(dir string, change func(*hubKeys) error) (*hubKeys, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	unlock, err := jsonlines.LockFile(context.Background(), filepath.Join(dir, "keys.lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	name := filepath.Join(dir, keysFile)
	before, err := os.ReadFile(name)
	keys := &hubKeys{}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		keys, err = newHubKeys()
	case err == nil:
		err = json.Unmarshal(before, keys)
	}
	if err == nil && len(keys.Members) == 0 {
		err = keys.addRoles()
	}
	if err == nil {
		err = change(keys)
	}
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(keys)
	if err == nil && !bytes.Equal(before, after) {
		err = atomicfile.WriteSynced(name, 0o600, after)
	}
	return keys, err
}

// addRoles makes a key for every role. The only key that an old hub had was one for everything.
func (k *hubKeys) addRoles() error {
	for _, role := range []string{RoleCoordinator, RoleWorker, RoleObserver} {
		if role == RoleCoordinator && k.Seed != "" {
			k.Members = append(k.Members, Member{Name: role, Role: role, Seed: k.Seed})
		} else if err := k.add(role, role); err != nil {
			return err
		}
	}
	k.Seed = ""
	return nil
}

func (k *hubKeys) add(name, role string) error {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	seed, err := pair.Seed()
	if err == nil {
		k.Members = append(k.Members, Member{Name: name, Role: role, Seed: string(seed)})
	}
	return err
}

// AddKey makes a key in the directory of a hub, which may be running, and returns the file to which
// the hub writes the key's URL.
func AddKey(dir, name, role string) (string, error) {
	if workerName(name, "") != name || name == "" || len(name) > maxName {
		return "", fmt.Errorf("key %q: use letters, digits, - and _", name)
	}
	if !slices.Contains([]string{RoleCoordinator, RoleWorker, RoleObserver}, role) {
		return "", fmt.Errorf("role %q: must be coordinator, worker or observer", role)
	}
	_, err := changeKeys(dir, func(k *hubKeys) error {
		if slices.ContainsFunc(k.Members, func(m Member) bool { return m.Name == name }) {
			return fmt.Errorf("there is a key %s; revoke it first", name)
		}
		return k.add(name, role)
	})
	return urlFile(dir, name), err
}

// RevokeKey removes a key, by its name or its public half. A running hub closes its connections.
func RevokeKey(dir, name string) error {
	_, err := changeKeys(dir, func(k *hubKeys) error {
		before := len(k.Members)
		k.Members = slices.DeleteFunc(k.Members, func(m Member) bool {
			public, err := m.Key()
			return m.Name == name || err == nil && public == name
		})
		if len(k.Members) == before {
			return fmt.Errorf("no key %q; fit fleet key list shows them", name)
		}
		if len(k.Members) == 0 {
			return errors.New("a hub needs at least one key")
		}
		return os.RemoveAll(urlFile(dir, name))
	})
	return err
}

// Keys returns the keys of a hub.
func Keys(dir string) ([]Member, error) {
	keys, err := hubSecrets(dir)
	if err != nil {
		return nil, err
	}
	return keys.Members, nil
}

func urlFile(dir, name string) string { return filepath.Join(dir, name+".url") }

// writeURLs writes the URL of every member into a file of its own, which only its owner can read.
func (k *hubKeys) writeURLs(dir string, join joinURL) error {
	for _, m := range k.Members {
		join.Token, join.Role = m.Seed, m.Role
		err := atomicfile.WriteSynced(urlFile(dir, m.Name), 0o600, []byte(join.String()+"\n"))
		if err != nil {
			return err
		}
	}
	return nil
}

func newHubKeys() (*hubKeys, error) {
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
