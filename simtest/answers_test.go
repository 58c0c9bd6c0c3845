package simtest

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// echo answers with the URL, and counts.
type echo struct{ asked int }

func (e *echo) RoundTrip(r *http.Request) (*http.Response, error) {
	e.asked++
	body := io.NopCloser(strings.NewReader(r.URL.String()))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body}, nil
}

// TestAnswers: each server is asked once, and answers of one are not given for another.
func TestAnswers(t *testing.T) {
	a, server := &answers{known: map[string]answer{}}, &echo{}
	for range 2 {
		for _, url := range []string{"http://memory/apis", "http://east/apis", "http://east/apis/apps/v1"} {
			r, err := http.NewRequest(http.MethodGet, url, nil)
			if err != nil || !asksForResources(r) {
				t.Fatal(url, err)
			}
			response, err := a.roundTrip(r, server)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(response.Body); string(body) != url || err != nil {
				t.Errorf("%s: %s, %v", url, body, err)
			}
		}
	}
	if server.asked != 3 {
		t.Errorf("the server was asked %d times", server.asked)
	}
	for _, path := range []string{"/api/v1/pods", "/version", "/apis/apps/v1/deployments", "/api?x=y"} {
		if r, _ := http.NewRequest(http.MethodGet, "http://memory"+path, nil); asksForResources(r) {
			t.Errorf("%s asks for resources", path)
		}
	}
}
