package loopback

import (
	"net"
	"net/http"
	"strings"
)

// Guard returns a handler that passes requests to next, and refuses those that pages of others may have made a browser
// send. Links from other pages may lead to the paths that page reports.
func Guard(next http.Handler, page func(path string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case isLoopback(r) && !isAddress(r.Host):
			http.Error(w, "this address is for this machine only: open it as localhost or by its IP address",
				http.StatusForbidden)
		case isForeign(r) && !page(r.URL.Path):
			http.Error(w, "pages of other origins may not read this", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isLoopback reports whether the request came in on a loopback address, or on one that is not known.
func isLoopback(r *http.Request) bool {
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

// isForeign reports whether a browser sent the request for a page of another origin.
func isForeign(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}
