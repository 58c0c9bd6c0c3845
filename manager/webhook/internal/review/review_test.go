package review

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestBodiesTogetherAreBounded: bodies are accepted until mostBytes are in use. A Content-Length that is only announced
// counts for nothing, and a body that is released or rejected makes room again.
func TestBodiesTogetherAreBounded(t *testing.T) {
	const size = 64 << 20
	text := bytes.Repeat([]byte(" "), size)
	ask := func() (func(), error) {
		r := httptest.NewRequest(http.MethodPost, "/convert", bytes.NewReader(text))
		r.Header.Set("Content-Type", "application/json")
		_, release, err := Read(r, 2*size)
		return release, err
	}
	silent := httptest.NewRequest(http.MethodPost, "/convert", io.MultiReader())
	silent.ContentLength = 1 << 40
	if _, _, err := Read(silent, 2*size); err == nil {
		t.Error("an empty body was read")
	}
	var releases []func()
	for range mostBytes / size {
		release, err := ask()
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
	}
	for range 2 {
		_, err := ask()
		if p := (problem{}); !errors.As(err, &p) || p.code != http.StatusServiceUnavailable {
			t.Errorf("one body more: %v, want %d", err, http.StatusServiceUnavailable)
		}
	}
	releases[0]()
	if release, err := ask(); err != nil {
		t.Errorf("after a body has gone: %v", err)
	} else {
		release()
	}
	for _, release := range releases[1:] {
		release()
	}
}
