package view

import (
	"crypto/subtle"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// policy is what a page may load: its own script and style, nothing inline and nothing from
// elsewhere.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard admits only our own pages: the right Host, no foreign Origin, and the cookie that the token
// was exchanged for.
func (s *Server) guard(address net.Addr, next http.Handler) http.Handler {
	hosts, anywhere := hostsOf(address), isUnspecified(address)
	_, port, _ := net.SplitHostPort(address.String())
	cookie := "fit-view-" + port
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setPolicy(w.Header())
		switch {
		case !hosts[strings.ToLower(r.Host)] && (!anywhere || r.Host != arrivedAt(r)):
			refuse(w, r, http.StatusForbidden, "this server does not answer to the host "+quote(r.Host))
		case !ownOrigin(r):
			refuse(w, r, http.StatusForbidden, "requests of other pages are not answered")
		case r.URL.Path == "/" && r.URL.Query().Has("token"):
			s.exchange(w, r, cookie)
		case !s.knows(r, cookie):
			refuse(w, r, http.StatusUnauthorized, "open the address that fit view printed: it carries a token")
		case r.Method != http.MethodGet && r.Method != http.MethodHead && !ownPost(r):
			refuse(w, r, http.StatusForbidden, "only fit's own pages may change something, and they send JSON")
		default:
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			next.ServeHTTP(w, r)
		}
	})
}

// setPolicy sets what pages may do.
func setPolicy(header http.Header) {
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-cache")
}

// maxBody bounds what a page may send.
const maxBody = 64 << 10

// hostsOf returns the names under which a server at an address is reached: its own, and those of
// the loopback interface if it listens there.
func hostsOf(address net.Addr) map[string]bool {
	host, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return nil
	}
	hosts := map[string]bool{net.JoinHostPort(host, port): true}
	if ip := net.ParseIP(host); ip.IsLoopback() || ip.IsUnspecified() {
		for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
			hosts[net.JoinHostPort(name, port)] = true
		}
	}
	return hosts
}

// isUnspecified reports whether a server listens on all interfaces.
func isUnspecified(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsUnspecified()
}

// arrivedAt returns the address of this machine that a request was sent to. A server on all
// interfaces answers to it: unlike a name, an address cannot be redirected.
func arrivedAt(r *http.Request) string {
	address, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return ""
	}
	return address.String()
}

// ownOrigin reports whether a request comes from our own pages, or from no page at all.
func ownOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		// a link on another page may lead here; it gets only the page
		return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.URL.Path == "/"
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	parsed, err := url.Parse(origin)
	return err == nil && (parsed.Scheme == "http" || parsed.Scheme == "https") && strings.EqualFold(parsed.Host, r.Host)
}

// ownPost reports whether a request that changes something was sent by our own page.
func ownPost(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return (r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") == "same-origin") &&
		err == nil && kind == "application/json"
}

// exchange sets a cookie for the token, and removes the token from the address.
func (s *Server) exchange(w http.ResponseWriter, r *http.Request, cookie string) {
	if !equal(r.URL.Query().Get("token"), s.token) {
		refuse(w, r, http.StatusUnauthorized,
			"the token is not that of this server: open the address that fit view printed")
		return
	}
	enter(w, cookie, s.session, false)
}

// enter sets the cookie with which a browser goes on, and leads it to the page.
func enter(w http.ResponseWriter, name, value string, secure bool) {
	http.SetCookie(w, &http.Cookie{
		Name:     name,
		Value:    value,
		Path:     "/",
		HttpOnly: true,
		Secure:   secure,
		SameSite: http.SameSiteLaxMode,
	})
	w.Header().Set("Location", "/")
	w.WriteHeader(http.StatusSeeOther)
}

func (s *Server) knows(r *http.Request, name string) bool {
	return slices.ContainsFunc(r.CookiesNamed(name), func(cookie *http.Cookie) bool {
		return equal(cookie.Value, s.session)
	})
}

// equal compares secrets in constant time.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// refuse answers a request that is not admitted: JSON to scripts, text to people.
func refuse(w http.ResponseWriter, r *http.Request, status int, message string) {
	if strings.HasPrefix(r.URL.Path, "/api/") {
		writeError(w, &problem{status: status, message: message})
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte("fit: " + message + "\n"))
}
