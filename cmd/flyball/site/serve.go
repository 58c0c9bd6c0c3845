package site

import (
	"cmp"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
)

// Policy is the Content-Security-Policy of the pages: it lets them load nothing but the site's own files.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self' " +
	"http://127.0.0.1:*; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP serves the files of the site.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := cmp.Or(strings.TrimPrefix(r.URL.Path, "/"), Index)
	text, ok := s.File(name)
	if !ok {
		http.Error(w, "there is no page "+r.URL.Path+"; the documentation begins at /", http.StatusNotFound)
		return
	}
	kind := mime.TypeByExtension(path.Ext(name))
	if kind == "" {
		kind = http.DetectContentType(text)
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", Policy)
	if strings.HasPrefix(kind, "image/svg") {
		// A drawing has a style of its own.
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	}
	_, _ = w.Write(text)
}

// Handler serves the site of docs, which it renders at the first request.
func Handler(docs fs.FS) http.Handler {
	rendered := sync.OnceValues(func() (*Site, error) { return New(docs, Options{}) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := rendered()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		s.ServeHTTP(w, r)
	})
}
