package egress

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// stand is a registry, called localhost here, and a proxy that allows it.
type stand struct {
	registry *httptest.Server
	host     string // of the registry, with its port
	proxy    string

	mu    sync.Mutex
	asked []string
}

func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{registry: httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "a package")
	}))}
	s.registry.Config.ErrorLog = log.New(io.Discard, "", 0) // not every greeting is meant to succeed
	s.registry.StartTLS()
	_, port, err := net.SplitHostPort(s.registry.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s.host = "localhost:" + port
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.proxy = listener.Addr().String()
	proxy := &Proxy{Hosts: []string{"LocalHost.:" + port}, Asked: func(host string, allowed bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, fmt.Sprint(strings.ReplaceAll(host, port, "PORT"), " ", allowed))
	}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = proxy.Serve(listener)
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
		s.registry.Close()
	})
	return s
}

func (s *stand) hosts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// client calls through the proxy and names a host in the first message of TLS, that of the URL if
// it is empty.
func (s *stand) client(serverName string) *http.Client {
	transport, _ := s.registry.Client().Transport.(*http.Transport)
	transport = transport.Clone()
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true, ServerName: serverName}
	transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: s.proxy})
	transport.DisableKeepAlives = true
	return &http.Client{Transport: transport}
}

func TestOnlyListedHostsAreReached(t *testing.T) {
	s := newStand(t)
	for _, test := range []struct{ name, url, serverName, want string }{
		{"a registry", "https://" + s.host + "/p", "", "a package"},
		{"the registry again", "https://" + s.host + "/p", "", "a package"},
		{"another name", "https://example.com/p", "", "Forbidden"},
		{"an address of the registry", "https://" + s.registry.Listener.Addr().String(), "", "Forbidden"},
		{"the registry at another port", "https://localhost/p", "", "Forbidden"},
		{"another name by way of the registry", "https://" + s.host + "/p", "example.com", "EOF"},
		{"plain text", "http://" + s.host + "/p", "", "fit: only https reaches package registries from here\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got string
			response, err := s.client(test.serverName).Get(test.url)
			if err != nil {
				got = err.Error()
			} else {
				body, err := io.ReadAll(response.Body)
				if err != nil {
					t.Error(err)
				}
				response.Body.Close()
				got = string(body)
			}
			if !strings.HasSuffix(got, test.want) {
				t.Errorf("%s: got %q, want %q", test.name, got, test.want)
			}
		})
	}
	want := []string{
		"localhost:PORT true", "example.com:443 false", "127.0.0.1:PORT false", "localhost:443 false",
		"example.com:PORT by localhost:PORT false",
	}
	if got := s.hosts(); !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
}

// What is not TLS does not get past the proxy, and a refusal says why.
func TestPlainTextIsNotCarried(t *testing.T) {
	s := newStand(t)
	for request, want := range map[string]string{
		"CONNECT " + s.host + " HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n": "200 Connection established\r\n\r\n",
		"CONNECT example.com:443 HTTP/1.1\r\n\r\n":                      "fit: example.com:443 is not a package registry of this task\n",
		"no request\r\n\r\n": "",
	} {
		t.Run(request, func(t *testing.T) {
			conn, err := net.Dial("tcp", s.proxy)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, request); err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(bufio.NewReader(conn)) // it may end by a reset: what came before counts
			conn.Close()
			if !strings.HasSuffix(string(got), want) || want == "" && len(got) > 0 {
				t.Errorf("%q is answered with %q, want %q", request, got, want)
			}
		})
	}
}
