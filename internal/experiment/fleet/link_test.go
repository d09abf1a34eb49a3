package fleet

import (
	"context"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/ledger"
)

// link is a TCP connection to the hub. Once cut, it drops what is sent and reports no error.
type link struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	cut      bool
	open     []net.Conn
	copying  sync.WaitGroup
	heard    func([]byte) // may be nil
}

func newLink(t *testing.T, to string, heard func([]byte)) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{listener: listener, to: to, heard: heard}
	l.copying.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			l.mu.Lock()
			l.open = append(l.open, near, far)
			l.mu.Unlock()
			l.copying.Go(func() { l.copy(near, far) })
			l.copying.Go(func() { l.copy(far, near) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.mu.Lock()
		for _, conn := range l.open {
			_ = conn.Close()
		}
		l.mu.Unlock()
		l.copying.Wait()
	})
	return l
}

func (l *link) copy(from, to net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		l.mu.Lock()
		cut, heard := l.cut, l.heard
		l.mu.Unlock()
		if heard != nil {
			heard(buffer[:n])
		}
		if err != nil {
			_ = to.Close()
			return
		}
		if !cut {
			_, _ = to.Write(buffer[:n])
		}
	}
}

func (l *link) setCut(cut bool) {
	l.mu.Lock()
	l.cut = cut
	l.mu.Unlock()
}

// through is the hub's URL by way of the link.
func (l *link) through(t *testing.T, url string) string {
	t.Helper()
	join, err := parseJoinURL(url)
	if err != nil {
		t.Fatal(err)
	}
	join.Address = l.listener.Addr().String()
	return join.String()
}

// eventually waits until something is true. The limit is for what does not come at all: a loaded
// machine takes its time.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 5 minutes: %s", what)
		}
	}
}

// promptly waits until something is true, for which a fleet may take two seconds. That is measured
// in make bench-fleet, where the machine has nothing else to do.
func promptly(t *testing.T, what string, is func() bool) {
	t.Helper()
	began := time.Now()
	eventually(t, what, is)
	took := time.Since(began)
	t.Logf("%s after %s", what, took.Round(time.Millisecond))
	if took > 2*time.Second && os.Getenv("FIT_BENCH") != "" {
		t.Errorf("%s after %s, want 2 s at most", what, took)
	}
}

func passes(_ context.Context, cell experiment.Cell, _ int) ledger.Record { return verdict(cell) }

func hubAddress(t *testing.T, url string) string {
	t.Helper()
	join, err := parseJoinURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return join.Address
}
