package inspect

import (
	"net"
	"net/http"
	"strings"
)

// policy lets the page load nothing but its own files, and run no script that a value of an object brings in.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// tapPath is the one path that takes other methods than GET, if there is something behind it.
const tapPath = "/inspect/api/tap"

// guard refuses requests that do not come from a reader of this page, and tells the browser what the page may do.
//
// Anybody on this machine may read a loopback address, so the browser must not lend it to the pages of others. Such a
// page may resolve its own name to 127.0.0.1 (DNS rebinding). So on a loopback address the Host header must be an
// address or localhost. Other addresses may have any name: the manager serves them only to readers that the API server
// knows, or to everyone.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch {
		case r.Method != http.MethodGet && r.URL.Path != tapPath:
			h.Set("Allow", http.MethodGet)
			http.Error(w, "only GET is allowed", http.StatusMethodNotAllowed)
		case onLoopback(r) && !isAddress(r.Host):
			http.Error(w, "this address is for this machine only: open it as localhost or by its IP address",
				http.StatusForbidden)
		case foreign(r):
			http.Error(w, "pages of other origins may not read this", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// onLoopback reports whether the request came in on a loopback address, or on one that is not known.
func onLoopback(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return !ok || local.IP.IsLoopback()
}

// isAddress reports whether a Host header names an IP address or localhost, neither of which a stranger can resolve.
func isAddress(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	return net.ParseIP(host) != nil || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// foreign reports whether a browser sent the request for a page of another origin. Links to the page are no such thing.
func foreign(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return strings.HasPrefix(r.URL.Path, "/inspect/api/") && site != "" && site != "same-origin" && site != "none"
}
