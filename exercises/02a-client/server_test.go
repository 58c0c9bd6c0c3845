package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// server is an API server in memory. It is the transport of a client.
type server struct {
	// version is the newest version, and states has the names of the objects at each version.
	version int
	states  map[int]string
	// forgotten is the oldest version of which the server has the history.
	forgotten int
	// stream is the body of the answer to a watch.
	stream io.Reader
	// refuse answers every request with 403.
	refuse bool
	// cut breaks off each page in the middle.
	cut bool
	// after is called after each page.
	after func(page int)

	pages, open int
	largest     int // limit in the requests
	listed      []url.Values
	watched     url.Values
	watching    context.Context // that of the watch
}

func newServer(names string) *server { return &server{version: 12, states: map[int]string{12: names}} }

// change makes a new version.
func (s *server) change(names string) {
	s.version++
	s.states[s.version] = names
}

func (s *server) client() *Client {
	return &Client{HTTP: &http.Client{Transport: s}, URL: "http://server/api/v1/pods", Limit: 2}
}

// RoundTrip answers a request.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	switch {
	case r.Context().Err() != nil:
		return nil, r.Context().Err()
	case s.refuse:
		return s.fail(403, "pods is forbidden")
	case query.Get("watch") == "true":
		s.watched, s.watching = query, r.Context()
		return s.answer(200, s.stream), nil
	}
	s.listed = append(s.listed, query)
	defer func() {
		s.pages++
		if s.after != nil {
			s.after(s.pages)
		}
	}()
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil {
		return s.fail(400, "limit is "+query.Get("limit"))
	}
	s.largest = max(s.largest, limit)
	version, start := s.version, 0
	if token := query.Get("continue"); token != "" {
		if query.Has("resourceVersion") {
			return s.fail(400, "specifying resource version is not allowed when using continue")
		}
		if _, err := fmt.Sscanf(token, "at-%d-from-%d", &version, &start); err != nil {
			return s.fail(400, "continue is "+token)
		}
	}
	if version < s.forgotten {
		return s.fail(410, "the continue token is too old")
	}
	names := strings.Fields(s.states[version])
	next, end := "", min(start+limit, len(names))
	if end < len(names) {
		next = fmt.Sprintf(`, "continue": "at-%d-from-%d"`, version, end)
	}
	var items []string
	for _, name := range names[start:end] {
		items = append(items, object(name, 7))
	}
	page := fmt.Sprintf(`{"metadata": {"resourceVersion": "%d"%s}, "items": [%s]}`, version, next,
		strings.Join(items, ", "))
	if s.cut {
		page = page[:len(page)-20]
	}
	return s.answer(200, strings.NewReader(page)), nil
}

func (s *server) fail(code int, message string) (*http.Response, error) {
	return s.answer(code, strings.NewReader(fmt.Sprintf(`{"code": %d, "message": %q}`, code, message))), nil
}

func (s *server) answer(code int, body io.Reader) *http.Response {
	s.open++
	return &http.Response{
		StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), Header: http.Header{},
		Body: &counted{Reader: body, open: &s.open},
	}
}

// counted is a body that is counted while it is open.
type counted struct {
	io.Reader
	open   *int
	closed bool
}

func (b *counted) Close() error {
	if !b.closed {
		b.closed = true
		*b.open--
	}
	if c, ok := b.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// object returns the JSON of an object, and frame returns the JSON of an event.
func object(name string, version int) string {
	return fmt.Sprintf(`{"metadata": {"name": "%s", "resourceVersion": "%d"}}`, name, version)
}

func frame(kind, name string, version int) string {
	return fmt.Sprintf("{\"type\": \"%s\", \"object\": %s}\n", kind, object(name, version))
}
