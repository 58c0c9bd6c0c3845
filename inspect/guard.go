package inspect

import (
	"net/http"
	"strings"

	"github.com/flyball-dev/flyball/internal/loopback"
)

// policy lets the page load nothing but its own files, and run no script that a value of an object brings in.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// tapPath is the one path that takes other methods than GET, if there is something behind it.
const tapPath = "/inspect/api/tap"

// guard refuses requests that do not come from a reader of this page, and tells the browser what the page may do. An
// address that is no loopback address may have any name: the manager serves it only to readers that the API server
// knows, or to everyone.
func guard(next http.Handler) http.Handler {
	next = loopback.Guard(next, isPage)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if r.Method != http.MethodGet && r.URL.Path != tapPath {
			h.Set("Allow", http.MethodGet)
			http.Error(w, "only GET is allowed", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isPage reports whether links of other pages may lead to a path.
func isPage(path string) bool { return !strings.HasPrefix(path, "/inspect/api/") }
