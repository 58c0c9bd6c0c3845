package simtest

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
)

// answers are those of the API server about its resources. They are the same in all runs of a scenario until somebody
// defines another resource, so the server needs to encode them only once.
type answers struct {
	mu    sync.Mutex // guards known
	known map[string]answer
}

// answer is what a [http.Response] is made of.
type answer struct {
	header http.Header
	body   []byte
}

// asksForResources reports whether r asks which resources there are.
func asksForResources(r *http.Request) bool {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	return r.Method == http.MethodGet && r.URL.RawQuery == "" && r.Header.Get("If-None-Match") == "" &&
		(parts[0] == "api" && len(parts) <= 2 || parts[0] == "apis" && len(parts) <= 3)
}

// roundTrip answers r with what an earlier run was answered, or asks the server.
func (a *answers) roundTrip(r *http.Request, server http.RoundTripper) (*http.Response, error) {
	key := r.URL.Host + r.URL.Path + " " + r.Header.Get("Accept") // Clusters have resources of their own.
	a.mu.Lock()
	known, ok := a.known[key]
	a.mu.Unlock()
	if !ok {
		response, err := server.RoundTrip(r)
		if err != nil || response.StatusCode != http.StatusOK {
			return response, err
		}
		defer response.Body.Close()
		if known.body, err = io.ReadAll(response.Body); err != nil {
			return nil, err
		}
		known.header = response.Header
		a.mu.Lock()
		a.known[key] = known
		a.mu.Unlock()
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: known.header.Clone(), Body: io.NopCloser(bytes.NewReader(known.body)),
		ContentLength: int64(len(known.body)), Request: r,
	}, nil
}
