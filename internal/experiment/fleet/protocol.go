package fleet

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
)

// Protocol is the version of the messages. Workers and coordinators of one fleet speak the same.
const Protocol = 2

// Needs are the requirements on a worker for the attempts of a pool.
type Needs struct {
	Fit       string            `json:"fit"`                 // version of fit
	Agents    map[string]string `json:"agents,omitempty"`    // versions by id
	Isolation string            `json:"isolation,omitempty"` // empty: any
	Labels    []string          `json:"labels,omitempty"`
	Env       []string          `json:"env,omitempty"` // variables whose values are not sent
}

// Worker is a worker's announcement of itself.
type Worker struct {
	Protocol  int               `json:"protocol"`
	Name      string            `json:"name"`
	ID        string            `json:"id,omitempty"` // of its directory: two workers of one name differ
	Host      string            `json:"host"`
	Fit       string            `json:"fit"`
	Slots     int               `json:"slots"`
	Busy      int               `json:"busy"`
	Labels    []string          `json:"labels,omitempty"`
	Agents    map[string]string `json:"agents,omitempty"`
	Isolation []string          `json:"isolation,omitempty"` // that work there
	Engines   []string          `json:"engines,omitempty"`   // of containers
	Env       []string          `json:"env,omitempty"`       // names of variables, never values
	Draining  bool              `json:"draining,omitempty"`
	Trouble   string            `json:"trouble,omitempty"` // why it takes no work for now
	Running   []Running         `json:"running,omitempty"`
	SinceMs   int64             `json:"sinceMs"`
	NowMs     int64             `json:"nowMs"` // by its own clock
	// Refuses says which pools the policy of the worker does not allow, and why.
	Refuses map[string]string `json:"refuses,omitempty"`
	// Key is the public key of the worker, by the subject of its announcement.
	Key string `json:"key,omitempty"`
}

// The bounds of what members say about themselves.
const (
	maxName         = 64
	maxText         = 1 << 10
	maxAnnouncement = 256 << 10 // MaxSlots attempts fit in it
	maxAnnounced    = 64 << 20  // of all workers together
	// MaxSlots bounds the cells of a worker: coordinators publish as many as there are slots.
	MaxSlots   = 1000
	maxReports = 16   // attempts of a worker that are over and on their way to the hub
	maxPerKey  = 1000 // workers with the same key
)

// readWorker reads the announcement of a worker. One that says more than a worker can be is no
// announcement.
func readWorker(key string, value []byte) (Worker, bool) {
	var w Worker
	if len(value) > maxAnnouncement || json.Unmarshal(value, &w) != nil {
		return Worker{}, false
	}
	signer, name, found := strings.Cut(key, ".")
	w.Key = signer
	return w, found && name == w.Name && validName(name) && w.Slots > 0 && w.Slots <= MaxSlots &&
		w.Busy >= 0 && w.Busy <= w.Slots && len(w.Host) <= maxText && len(w.Running) <= w.Slots+maxReports
}

// session names this life of a worker: one that is started again has another.
func (w *Worker) session() string { return fmt.Sprintf("%s/%d", w.ID, w.SinceMs) }

// validName reports whether a worker can have a name.
func validName(name string) bool {
	return name != "" && len(name) <= maxName && workerName(name, "") == name
}

// Running is an attempt that a worker is making.
type Running struct {
	Run     string `json:"run"`
	Attempt string `json:"attempt"` // its directory below the run directory
	SinceMs int64  `json:"sinceMs"`
	Proof   string `json:"proof,omitempty"` // that the worker was given it, see claimProof
}

// Lacks returns what a worker lacks to meet needs; empty if nothing.
func (w *Worker) Lacks(n Needs) string {
	switch {
	case w.Protocol != Protocol:
		return fmt.Sprintf("it speaks protocol %d, not %d", w.Protocol, Protocol)
	case w.Fit != n.Fit:
		return fmt.Sprintf("it has fit %s, not %s", w.Fit, n.Fit)
	case n.Isolation != "" && !slices.Contains(w.Isolation, n.Isolation) && !slices.Contains(w.Engines, n.Isolation):
		return "it has no isolation " + n.Isolation
	}
	for _, id := range slices.Sorted(maps.Keys(n.Agents)) {
		switch has, installed := w.Agents[id]; {
		case !installed:
			return "it has no agent " + id
		case has != n.Agents[id]:
			return fmt.Sprintf("it has %s %s, not %s", id, has, n.Agents[id])
		}
	}
	for _, label := range n.Labels {
		if !slices.Contains(w.Labels, label) {
			return "it has no label " + label
		}
	}
	for _, name := range n.Env {
		if !slices.Contains(w.Env, name) {
			return "its environment has no " + name
		}
	}
	return ""
}

// poolInfo describes a pool to workers. It is in the bucket of the fleet while its experiment runs.
type poolInfo struct {
	Protocol int      `json:"protocol"`
	Run      string   `json:"run"`
	Name     string   `json:"name"`
	Provider string   `json:"provider"`
	Arms     []string `json:"arms"`
	Needs    Needs    `json:"needs"`
	By       string   `json:"by"` // the key of the coordinator, which signs the attempts
	LeaseMs  int64    `json:"leaseMs"`
	Trees    []string `json:"trees,omitempty"` // the objects that the hub must keep
	// Title and Dir are for people: the family, and the run directory on the coordinator.
	Title string `json:"title,omitempty"`
	Dir   string `json:"dir,omitempty"`
	// Hold says that no attempt of the pool may begin for now: it has no part of its cap, or the
	// experiment is paused.
	Hold bool `json:"hold,omitempty"`
}

// valid reports whether a worker can work with a pool.
func (p *poolInfo) valid() bool {
	lease := time.Duration(p.LeaseMs) * time.Millisecond
	return isNonce(p.Run) && p.Name != "" && p.LeaseMs <= maxLease.Milliseconds() && lease >= minLease
}

func (p *poolInfo) stream() string { return "fit-work-" + p.Run + "-" + p.Name }

func (p *poolInfo) key() string { return poolPrefix + p.Run + "." + p.Name }

// work is the message of an attempt.
type work struct {
	Protocol int             `json:"protocol"`
	Run      string          `json:"run"`
	Pool     string          `json:"pool"`
	Cell     experiment.Cell `json:"cell"`
	Attempt  int             `json:"attempt"`
	// Avoid are workers on which the cell ended in infrastructure errors.
	Avoid []string `json:"avoid,omitempty"`
	// Probe asks for one reply of every arm's model instead of an attempt.
	Probe bool `json:"probe,omitempty"`
	// Refused are the keys whose results of this attempt were none.
	Refused []string `json:"refused,omitempty"`
	// Spec is the hash of the experiment, with which its object can be read, and Ticket proves that
	// the attempt was given to its owner: only who takes the attempt reads this.
	Spec   string `json:"spec"`
	Ticket string `json:"ticket"`
}

// name returns the attempt's directory below the run directory.
func (w *work) name() string {
	if w.Probe {
		return "probe/" + w.Pool
	}
	return w.Cell.RunDir(w.Attempt)
}

// token names the attempt in subjects.
func (w *work) token() string { return token(w.name()) }

func token(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:12])
}

func (w *work) subject() string { return "fit.work." + w.Run + "." + w.Pool + "." + w.token() }

// file is something that is too large for a message: Size bytes in messages whose subject ends with
// Name.
type file struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// done is a worker's report of how an attempt ended.
type done struct {
	Protocol int    `json:"protocol"`
	Name     string `json:"name"` // of the attempt
	Ticket   string `json:"ticket"`
	Worker   string `json:"worker"`
	Nonce    string `json:"nonce"` // of this try
	Host     string `json:"host"`
	// Record is the record of the attempt; one that is too large for a message is in RecordFile.
	Record     json.RawMessage `json:"record,omitempty"`
	RecordFile *file           `json:"recordFile,omitempty"`
	// File holds what the attempt left, and SHA256 is the hash of that; nil: nothing.
	File   *file  `json:"file,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	// Tree is what File would hold, where it is small.
	Tree   []byte             `json:"tree,omitempty"`
	SentMs int64              `json:"sentMs"` // by the worker's clock
	Probes []experiment.Probe `json:"probes,omitempty"`
	// Error says why a probe failed.
	Error string `json:"error,omitempty"`

	key   string        // that signed it
	off   time.Duration // the offset of the worker's clock, if it matters
	bytes int           // of its message that are held
}

// valid reports whether a result is one of the attempt with a token, by a worker that was given it.
func (d *done) valid(tok, secret string) bool {
	return d.Protocol == Protocol && isNonce(d.Nonce) && token(d.Name) == tok && validName(d.Worker) &&
		len(d.Host) <= maxText && hmac.Equal([]byte(d.Ticket), []byte(ticketOf(secret, d.Name))) &&
		d.File.valid() && d.RecordFile.valid()
}

func (f *file) valid() bool {
	return f == nil || isNonce(f.Name) && f.Size >= 0 && f.Size <= maxTree
}

// event says that a worker has begun an attempt, or could not.
type event struct {
	Name   string `json:"name"`
	Worker string `json:"worker"`
	Proof  string `json:"proof,omitempty"` // as in Running
	// Broken is an object that is not what its name says; empty: all are.
	Broken string `json:"broken,omitempty"`
}

// cancellation asks workers to stop an attempt.
type cancellation struct {
	Name  string `json:"name"`
	Proof string `json:"proof"`
}

// The subjects and stores of a run.
func doneStream(run string) string             { return "fit-done-" + run }
func doneSubject(run, key, tok string) string  { return "fit.done." + run + "." + key + "." + tok }
func filesStream(run string) string            { return "fit-files-" + run }
func fileSubject(run, key, name string) string { return "fit.file." + run + "." + key + "." + name }
func eventSubject(run, key string) string      { return "fit.event." + run + "." + key }
func cancelSubject(run string) string          { return "fit.cancel." + run }

// The stores of the fleet.
const (
	fleetBucket   = "fit-fleet"
	workersBucket = "fit-workers"
	treesBucket   = "fit-trees"
	protocolKey   = "protocol"
	poolPrefix    = "pool."
	capPrefix     = "cap."
	grantPrefix   = "grant."
	drainPrefix   = "drain."
	livesPrefix   = "coordinator." // in the bucket of the workers, whose entries expire
	// settings have the names of the flags that set them
	leaseKey    = "lease"
	maxHeldKey  = "max-held"
	keyMaxMBKey = "key-max-mb"
)

// providerKey returns the key of a provider, whose name may have characters that keys may not.
func providerKey(prefix, provider string) string {
	return prefix + base64.RawURLEncoding.EncodeToString([]byte(provider))
}

func providerOf(key string) (string, bool) {
	name, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(key, capPrefix))
	return string(name), err == nil
}
