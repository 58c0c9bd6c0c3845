package github_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/examples/operators/ci/github"
)

func ExampleNewHTTP() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"ref":"refs/heads/main","object":{"type":"commit","sha":"0a1b2c"}}`)
	}))
	defer server.Close()
	c, err := github.NewHTTP(github.HTTPOptions{Endpoint: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.GetRef(context.Background(), "org", "repo", "heads/main"))
	// Output: 0a1b2c <nil>
}

// Both implementations answer alike.
func TestGetRef(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer secret" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		switch strings.TrimPrefix(r.URL.Path, "/repos/org/repo/git/refs/heads/") {
		case "main":
			fmt.Fprint(w, `{"object":{"sha":"abc"}}`)
		case "release":
			fmt.Fprint(w, ` [{"ref":"refs/heads/release-1"},{"ref":"refs/heads/release-2"}]`)
		case "broken":
			fmt.Fprint(w, `{}`)
		case "down":
			http.Error(w, "", http.StatusBadGateway)
		case "slow":
			<-r.Context().Done()
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	dir := t.TempDir()
	token, refs := filepath.Join(dir, "token"), filepath.Join(dir, "refs.yaml")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(token, "secret\n")
	write(refs, "org/repo:\n  heads/main: abc\n  heads/release-1: a\n  heads/release-2: b\n")
	remote, err := github.NewHTTP(github.HTTPOptions{Endpoint: server.URL + "/", TokenFile: token})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]github.Client{"http": remote, "file": github.File(refs)} {
		if sha, err := c.GetRef(t.Context(), "org", "repo", "heads/main"); sha != "abc" || err != nil {
			t.Errorf("%s: %q, %v", name, sha, err)
		}
		if _, err := c.GetRef(t.Context(), "org", "repo", "heads/nope"); !errors.Is(err, github.ErrNotFound) ||
			!github.Permanent(err) {
			t.Errorf("%s: %v, want that it is not found", name, err)
		}
		if _, err := c.GetRef(t.Context(), "org", "repo", "heads/release"); !errors.Is(err, github.ErrTooManyRefs) ||
			!github.Permanent(err) {
			t.Errorf("%s: %v, want too many", name, err)
		}
	}
	for _, branch := range []string{"broken", "down"} {
		if _, err := remote.GetRef(t.Context(), "org", "repo", "heads/"+branch); err == nil || github.Permanent(err) {
			t.Errorf("%s: %v, want an error that may pass", branch, err)
		}
	}
	impatient, err := github.NewHTTP(
		github.HTTPOptions{Endpoint: server.URL, TokenFile: token, Timeout: 10 * time.Millisecond},
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := impatient.GetRef(t.Context(), "org", "repo", "heads/slow"); err == nil || github.Permanent(err) {
		t.Errorf("slow: %v, want an error that may pass", err)
	}
	for _, c := range []github.Client{github.File(filepath.Join(dir, "missing")), github.File(dir)} {
		if _, err := c.GetRef(t.Context(), "org", "repo", "heads/main"); err == nil || github.Permanent(err) {
			t.Errorf("%v: %v, want an error that may pass", c, err)
		}
	}
	if _, err := github.NewHTTP(github.HTTPOptions{Endpoint: "api.github.com"}); err == nil {
		t.Error("an endpoint without a scheme is accepted")
	}
}
