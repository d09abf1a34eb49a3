// Package egress lets programs in a private network reach a list of hosts, over TLS, and nothing
// else.
package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Port is the port of the proxy on the programs' loopback. It is below the ports that systems
// assign, so nothing else there has it.
const Port = 3128

// Variables returns the environment variables for the proxy, as NAME=value. Services on the
// loopback itself are reached without it.
func Variables() []string {
	proxy, direct := fmt.Sprintf("http://127.0.0.1:%d", Port), "localhost,127.0.0.1,::1"
	return []string{"HTTPS_PROXY=" + proxy, "https_proxy=" + proxy, "NO_PROXY=" + direct, "no_proxy=" + direct}
}

const (
	greetingDelay = 30 * time.Second // for the request and the first message of TLS
	dialDelay     = 30 * time.Second
	requestLimit  = 64 << 10
	maxCarried    = 128 // concurrent connections: each takes two files of the process that serves everybody
	maxRefused    = 200 // different hosts that are noted: a program may ask for as many as it likes
	maxHost       = 300 // bytes of a noted host; the longest name and its port are shorter
	tlsPort       = "443"
)

// Proxy is an HTTP proxy that knows CONNECT only.
type Proxy struct {
	// Hosts may be reached: a name, with :port where that is not 443.
	Hosts []string
	// Asked is called when a host is reached or refused for the first time.
	Asked func(host string, allowed bool)

	mu               sync.Mutex
	reached, refused map[string]bool
}

// Serve answers the connections on a listener until that is closed. When it returns, every
// connection has ended.
func (p *Proxy) Serve(listener net.Listener) error {
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel()
	carried := make(chan struct{}, maxCarried)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		select {
		case carried <- struct{}{}:
			serving.Go(func() {
				defer func() { <-carried }()
				p.serve(ctx, conn)
			})
		default:
			_ = conn.Close() // a client with so many has had its share
		}
	}
}

// serve handles one connection, which carries one request.
func (p *Proxy) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if conn.SetReadDeadline(time.Now().Add(greetingDelay)) != nil {
		return
	}
	limited := &io.LimitedReader{R: conn, N: requestLimit}
	reader := bufio.NewReader(limited)
	request, err := http.ReadRequest(reader)
	if err != nil {
		return
	}
	limited.N = math.MaxInt64
	host := canonical(request.Host)
	switch {
	case request.Method != http.MethodConnect:
		answer(conn, http.StatusMethodNotAllowed, "only https reaches package registries from here")
		return
	case !slices.ContainsFunc(p.Hosts, func(one string) bool { return canonical(one) == host }):
		p.note(host, false)
		answer(conn, http.StatusForbidden, host+" is not a package registry of this task")
		return
	}
	dialer := net.Dialer{ControlContext: refuseInside(host)}
	dialing, cancel := context.WithTimeout(ctx, dialDelay)
	defer cancel()
	upstream, err := dialer.DialContext(dialing, "tcp", host)
	if err != nil {
		answer(conn, http.StatusBadGateway, host+" cannot be reached: "+err.Error())
		return
	}
	defer upstream.Close()
	defer context.AfterFunc(ctx, func() { upstream.Close() })()
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
		p.carry(host, conn, reader, upstream)
	}
}

// carry passes a connection on once its first message has shown that it is TLS with the same host:
// the machines behind a name may answer for other names too.
func (p *Proxy) carry(host string, conn net.Conn, reader io.Reader, upstream net.Conn) {
	name, greeting, err := serverName(reader)
	if err != nil {
		if errors.Is(err, errHidden) {
			p.note("a hidden name by "+host, false)
		}
		return
	}
	bare, port, err := net.SplitHostPort(host)
	if err != nil {
		return
	}
	if asked := canonical(net.JoinHostPort(name, port)); asked != canonical(net.JoinHostPort(bare, port)) {
		p.note(asked+" by "+host, false)
		return
	}
	if conn.SetReadDeadline(time.Time{}) != nil {
		return
	}
	p.note(host, true)
	var both sync.WaitGroup
	both.Go(func() { copyTo(upstream, io.MultiReader(bytes.NewReader(greeting), reader)) })
	both.Go(func() { copyTo(conn, upstream) })
	both.Wait()
}

// copyTo passes on one direction and its end.
func copyTo(to net.Conn, from io.Reader) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		_ = to.Close() // there is nothing more to say to it
	}
}

// note reports a host once.
func (p *Proxy) note(host string, allowed bool) {
	if len(host) > maxHost {
		host = strings.ToValidUTF8(host[:maxHost], "") + "…"
	}
	if p.first(host, allowed) && p.Asked != nil {
		p.Asked(host, allowed)
	}
}

// first reports whether a host must be noted. Hosts that are reached are always noted, however many
// were refused.
func (p *Proxy) first(host string, allowed bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reached == nil {
		p.reached, p.refused = map[string]bool{}, map[string]bool{}
	}
	seen := p.refused
	if allowed {
		seen = p.reached
	}
	if seen[host] || !allowed && len(seen) >= maxRefused {
		return false
	}
	seen[host] = true
	return true
}

// refuseInside refuses the addresses of a name that are on this machine or its link, where other
// services than registries answer: the owner of the domain decides its address. Only localhost
// means this machine.
func refuseInside(host string) func(context.Context, string, string, syscall.RawConn) error {
	name, _, _ := net.SplitHostPort(host)
	return func(_ context.Context, _, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		to := at.Addr().Unmap()
		if to.IsLoopback() && name == "localhost" || to.IsGlobalUnicast() {
			return nil
		}
		return fmt.Errorf("%s is not an address of a registry", to)
	}
}

// canonical returns a host and its port in the form in which they are compared.
func canonical(host string) string {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = host, tlsPort
	}
	return net.JoinHostPort(strings.ToLower(strings.TrimSuffix(name, ".")), port)
}

// answer refuses a request with a line that readers of the program's output understand.
func answer(conn net.Conn, status int, text string) {
	text = "fit: " + text + "\n"
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\n"+
		"Content-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, http.StatusText(status), len(text), text) // the client may be gone
}

var (
	errSeen   = errors.New("the greeting has been read")
	errHidden = errors.New("the greeting hides who it is meant for")
)

// encryptedHello and encryptedName are extensions of TLS (RFC 9849 and its first draft) that make a
// greeting go to another host than the one that it names.
const encryptedHello, encryptedName = 0xfe0d, 0xffce

// serverName reads the first message of TLS. It returns the host that it names, and the bytes that
// were read.
func serverName(from io.Reader) (name string, read []byte, err error) {
	var kept bytes.Buffer
	err = tls.Server(listened{reader: io.TeeReader(from, &kept)}, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if slices.Contains(hello.Extensions, encryptedHello) || slices.Contains(hello.Extensions, encryptedName) {
				return nil, errHidden
			}
			name = hello.ServerName
			return nil, errSeen
		},
	}).Handshake()
	if !errors.Is(err, errSeen) {
		return "", nil, err
	}
	return name, kept.Bytes(), nil
}

// listened is a connection that is only read.
type listened struct {
	net.Conn
	reader io.Reader
}

func (l listened) Read(b []byte) (int, error)       { return l.reader.Read(b) }
func (l listened) Write(b []byte) (int, error)      { return len(b), nil }
func (l listened) SetWriteDeadline(time.Time) error { return nil }
