package fleet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Settings of a fleet hold for experiments that begin after they were set. A zero leaves what was
// set earlier, or else the default.
type Settings struct {
	// Lease is how long an attempt stays with a worker that does not report.
	Lease time.Duration
	// MaxHeld is how long it stays with one that reports; by default as long as its task allows.
	MaxHeld time.Duration
	// KeyMaxMB is how many megabytes the hub keeps of files of a worker's key that no result names.
	KeyMaxMB int
}

// The bounds of settings: workers report six times within a lease.
const (
	minLease    = time.Second
	maxLease    = 24 * time.Hour
	longestHeld = 30 * 24 * time.Hour
	maxKeyMB    = 1 << 20
)

// check makes sure that settings which are set can be.
func (s *Settings) check() error {
	switch {
	case s.Lease != 0 && (s.Lease < minLease || s.Lease > maxLease):
		return fmt.Errorf("lease %s: must be from %s to %s", s.Lease, minLease, maxLease)
	case s.MaxHeld != 0 && (s.MaxHeld < minLease || s.MaxHeld > longestHeld):
		return fmt.Errorf("max-held %s: must be from %s to %s", s.MaxHeld, minLease, longestHeld)
	case s.KeyMaxMB < 0 || s.KeyMaxMB > maxKeyMB:
		return fmt.Errorf("key-max-mb %d: must be from 1 to %d", s.KeyMaxMB, maxKeyMB)
	}
	return nil
}

// Set changes the settings of the fleet that are not zero.
func (h *Hub) Set(ctx context.Context, s Settings) error {
	if err := s.check(); err != nil {
		return err
	}
	texts := map[string]string{}
	if s.Lease != 0 {
		texts[leaseKey] = s.Lease.String()
	}
	if s.MaxHeld != 0 {
		texts[maxHeldKey] = s.MaxHeld.String()
	}
	if s.KeyMaxMB != 0 {
		texts[keyMaxMBKey] = strconv.Itoa(s.KeyMaxMB)
	}
	for key, text := range texts {
		if err := h.put(ctx, fleetBucket, key, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// settings returns what Set has set, or the defaults.
func (h *Hub) settings(ctx context.Context) (Settings, error) {
	s := Settings{Lease: defaultLease, KeyMaxMB: maxResult >> 20}
	for key, read := range map[string]func(text string) error{
		leaseKey:    func(text string) (err error) { s.Lease, err = time.ParseDuration(text); return err },
		maxHeldKey:  func(text string) (err error) { s.MaxHeld, err = time.ParseDuration(text); return err },
		keyMaxMBKey: func(text string) (err error) { s.KeyMaxMB, err = strconv.Atoi(text); return err },
	} {
		entry, err := h.get(ctx, fleetBucket, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			continue
		}
		if err != nil {
			return Settings{}, err
		}
		if err := errors.Join(read(string(entry.Value())), s.check()); err != nil {
			return Settings{}, fmt.Errorf("the fleet's %s is %.20q; set it with fit fleet serve --%s", key,
				entry.Value(), key)
		}
	}
	return s, nil
}
