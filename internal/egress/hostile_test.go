package egress

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
)

// tunnel asks the proxy for a host and returns the connection when it has agreed.
func (s *stand) tunnel(t *testing.T, host string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.proxy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	const agreed = "HTTP/1.1 200 Connection established\r\n\r\n"
	got := make([]byte, len(agreed))
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.0\r\n\r\n", host); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != agreed {
		t.Fatalf("the proxy answers %q (%v)", got, err)
	}
	return conn
}

// answered is everything that the proxy says to a request.
func (s *stand) answered(t *testing.T, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", s.proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, request) // it may be refused before it has been written
	got, _ := io.ReadAll(conn)           // and end by a reset
	return string(got)
}

// However many hosts a program asks for in vain, the trace says which one it reached.
func TestAFloodOfNamesHidesNoHostThatIsReached(t *testing.T) {
	s := newStand(t)
	for i := range maxRefused + 5 {
		s.answered(t, fmt.Sprintf("CONNECT h%d.example:443 HTTP/1.1\r\n\r\n", i))
	}
	response, err := s.client("").Get("https://" + s.host)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if got := s.hosts(); len(got) != maxRefused+1 || !slices.Contains(got, "localhost:PORT true") {
		t.Errorf("noted %d hosts, the last %q", len(got), got[len(got)-1])
	}
}

// A name as long as a request does not fill the trace.
func TestALongNameIsNotedInShort(t *testing.T) {
	s := newStand(t)
	s.answered(t, "CONNECT "+strings.Repeat("a", 60<<10)+":443 HTTP/1.1\r\n\r\n")
	if got := s.hosts(); len(got) != 1 || len(got[0]) > 2*maxHost {
		t.Errorf("noted %d hosts: %.400q", len(got), got)
	}
}

// A program that opens as many connections as it can does not take the files of the process that
// serves everybody, and harms nobody but itself.
func TestConnectionsAreBounded(t *testing.T) {
	s := newStand(t)
	held := make([]net.Conn, maxCarried)
	for i := range held {
		held[i] = s.tunnel(t, s.host)
	}
	if got := s.answered(t, "CONNECT "+s.host+" HTTP/1.1\r\n\r\n"); got != "" {
		t.Errorf("one connection too many is answered with %q", got)
	}
	for _, conn := range held {
		conn.Close()
	}
	for s.answered(t, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") == "" {
		continue // the proxy sees in its own time that they are gone
	}
}

// A greeting that is encrypted for another host than the one that it names is not passed on: a
// machine that answers for many names would take it to that host.
func TestAHiddenNameIsRefused(t *testing.T) {
	agent, proxy := net.Pipe()
	defer proxy.Close()
	configs := echConfigs(t, "registry.example")
	go func() {
		_ = tls.Client(agent, &tls.Config{
			ServerName: "hidden.example", MinVersion: tls.VersionTLS13,
			EncryptedClientHelloConfigList: configs,
		}).Handshake() // nobody answers it
	}()
	if name, _, err := serverName(proxy); !errors.Is(err, errHidden) {
		t.Errorf("the greeting is for %q: %v", name, err)
	}
}

// echConfigs is a list with one configuration for encrypted greetings that name a host in public.
func echConfigs(t *testing.T, public string) []byte {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	sized := func(data []byte) { b.Write([]byte{byte(len(data) >> 8), byte(len(data))}); b.Write(data) }
	b.Write([]byte{1, 0, 32}) // its id; X25519
	sized(key.PublicKey().Bytes())
	sized([]byte{0, 1, 0, 1}) // HKDF-SHA256, AES-128-GCM
	b.WriteByte(32)
	b.WriteByte(byte(len(public)))
	b.WriteString(public)
	sized(nil)
	config := bytes.Clone(b.Bytes())
	b.Reset()
	b.Write([]byte{encryptedHello >> 8, encryptedHello & 0xff})
	sized(config)
	list := bytes.Clone(b.Bytes())
	b.Reset()
	sized(list)
	return b.Bytes()
}

// A greeting without a name, in TLS 1.2, and one in many small records.
func TestGreetingsOfEveryShape(t *testing.T) {
	s := newStand(t)
	nameless := tls.Client(s.tunnel(t, s.host), &tls.Config{
		InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12,
	})
	if err := nameless.Handshake(); err == nil {
		t.Error("a greeting without a name is passed on")
	}
	split := tls.Client(splitRecords{s.tunnel(t, s.host)}, &tls.Config{
		InsecureSkipVerify: true, ServerName: "LOCALHOST",
	})
	if err := split.Handshake(); err != nil {
		t.Errorf("a greeting in many records: %v", err)
	}
	want := []string{":PORT by localhost:PORT false", "localhost:PORT true"}
	if got := s.hosts(); !slices.Equal(got, want) {
		t.Errorf("noted %q, want %q", got, want)
	}
}

// splitRecords writes a handshake message in records of sixteen bytes.
type splitRecords struct{ net.Conn }

func (c splitRecords) Write(b []byte) (int, error) {
	if b[0] != 22 || len(b) < 5 || len(b) != 5+int(b[3])<<8+int(b[4]) || b[5] != 1 {
		return c.Conn.Write(b)
	}
	for part := range slices.Chunk(b[5:], 16) {
		if _, err := c.Conn.Write(append([]byte{22, b[1], b[2], 0, byte(len(part))}, part...)); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// Every way to write another host than a registry is refused, and the answer says so.
func TestSpellingsOfHosts(t *testing.T) {
	s := newStand(t)
	_, port, _ := net.SplitHostPort(s.host)
	for _, request := range []string{
		"CONNECT localhost..:" + port, "CONNECT localhost:0" + port, "CONNECT localhost:",
		"CONNECT localhost%2e:" + port, "CONNECT 127.1:" + port, "CONNECT 2130706433:" + port,
		"CONNECT [::1]:" + port, "CONNECT [::ffff:127.0.0.1]:" + port,
		"CONNECT 169.254.169.254:80", "CONNECT loc\u0430lhost:" + port, "CONNECT localhost.evil.example:" + port,
		"GET http://" + s.host + "/",
		"GET / HTTP/1.1\r\nHost: " + s.host + "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX:",
		"CONNECT example.com:443 HTTP/1.1\r\nHost: " + s.host + "\r\nX:",
	} {
		got := s.answered(t, request+" HTTP/1.1\r\n\r\n")
		if got != "" && !strings.HasPrefix(got, "HTTP/1.1 403 ") && !strings.HasPrefix(got, "HTTP/1.1 405 ") {
			t.Errorf("%q is answered with %q", request, got)
		}
	}
	endless := "CONNECT " + s.host + " HTTP/1.1\r\nX: " + strings.Repeat("x", requestLimit) + "\r\n\r\n"
	if got := s.answered(t, endless); got != "" {
		t.Errorf("an endless request is answered with %.80q", got)
	}
	for _, noted := range s.hosts() {
		if strings.HasSuffix(noted, "true") {
			t.Errorf("%q was let through", noted)
		}
	}
}

// A name whose address is this machine, or on its link, is not a registry.
func TestAddressesOfThisMachineAreRefused(t *testing.T) {
	for _, test := range []struct {
		host, address string
		allowed       bool
	}{
		{"pypi.org:443", "151.101.0.223:443", true},
		{"packages.corp:443", "10.1.2.3:443", true},
		{"packages.corp:443", "[fd00::1]:443", true},
		{"localhost:443", "127.0.0.1:443", true},
		{"localhost:443", "[::1]:443", true},
		{"pypi.org:443", "127.0.0.1:443", false},
		{"pypi.org:443", "[::ffff:127.0.0.1]:443", false},
		{"pypi.org:443", "[::1]:443", false},
		{"pypi.org:443", "0.0.0.0:443", false},
		{"pypi.org:443", "169.254.169.254:443", false},
		{"localhost:443", "169.254.169.254:443", false},
		{"pypi.org:443", "[fe80::1%eth0]:443", false},
	} {
		t.Run(test.host, func(t *testing.T) {
			err := refuseInside(test.host)(t.Context(), "tcp", test.address, nil)
			if (err == nil) != test.allowed {
				t.Errorf("at %s: %v", test.address, err)
			}
		})
	}
}

// When Serve returns, nobody who held a connection has one.
func TestNobodyHoldsAConnectionAfterTheEnd(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newStand(t)
	_, port, _ := net.SplitHostPort(s.host)
	done := make(chan error, 1)
	go func() { done <- (&Proxy{Hosts: []string{"localhost:" + port}}).Serve(listener) }()
	s.proxy = listener.Addr().String()
	silent, err := net.Dial("tcp", s.proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	waiting := s.tunnel(t, s.host)
	carried := tls.Client(s.tunnel(t, s.host), &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"})
	if err := carried.Handshake(); err != nil {
		t.Fatal(err)
	}
	listener.Close()
	<-done
	for name, conn := range map[string]net.Conn{"silent": silent, "waiting": waiting, "carried": carried.NetConn()} {
		t.Run(name, func(t *testing.T) {
			if _, err := io.Copy(io.Discard, conn); err == nil {
				return // its end
			} else if !strings.Contains(err.Error(), "reset") {
				t.Errorf("the %s connection: %v", name, err)
			}
		})
	}
}
