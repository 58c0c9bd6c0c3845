package localapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// request is a raw HTTP request. Only the path is required.
type request struct {
	ctx                        context.Context
	method, path, body         string
	contentType, accept, agent string
}

// newRequest makes a raw request.
func newRequest(t testing.TB, ctx context.Context, config *rest.Config, r request) *http.Request {
	t.Helper()
	if r.method == "" {
		r.method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, r.method, config.Host+r.path, strings.NewReader(r.body))
	if err != nil {
		t.Fatalf("make request: %v", err)
	}
	for name, value := range map[string]string{
		"Content-Type": r.contentType, "Accept": r.accept,
		"User-Agent": r.agent,
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	return req
}

// send sends a raw request and returns the response, whose body the caller closes.
func send(t testing.TB, config *rest.Config, r request) *http.Response {
	t.Helper()
	if r.ctx == nil {
		r.ctx = t.Context()
	}
	response, err := config.Transport.RoundTrip(newRequest(t, r.ctx, config, r))
	if err != nil {
		t.Fatalf("%s %s: %v", r.method, r.path, err)
	}
	return response
}

// errorOf reads a response to its end and returns the error in it, if it is one.
func errorOf(response *http.Response) error {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode < 300 {
		return nil
	}
	var s metav1.Status
	if err := json.Unmarshal(body, &s); err != nil {
		return err
	}
	return &apierrors.StatusError{ErrStatus: s}
}

func parseVersion(t testing.TB, version string) int64 {
	t.Helper()
	v, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// answer sends a raw request and returns the answer's code and body.
func answer(t testing.TB, config *rest.Config, r request) (int, string) {
	t.Helper()
	response := send(t, config, r)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: read answer: %v", r.method, r.path, err)
	}
	return response.StatusCode, string(body)
}

// statusOf decodes an answer that must be a Status.
func statusOf(t testing.TB, body string) metav1.Status {
	t.Helper()
	var s metav1.Status
	if err := json.Unmarshal([]byte(body), &s); err != nil || s.Kind != "Status" {
		t.Fatalf("answer is not a Status (%v): %s", err, body)
	}
	return s
}

// frame is one line of a JSON watch.
type frame struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// frames reads a JSON watch to its end.
func frames(t testing.TB, body io.Reader) iter.Seq[frame] {
	return func(yield func(frame) bool) {
		lines := bufio.NewReader(body)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var f frame
			if err := json.Unmarshal(line, &f); err != nil {
				t.Errorf("watch frame %q: %v", line, err)
				return
			}
			if !yield(f) {
				return
			}
		}
	}
}
