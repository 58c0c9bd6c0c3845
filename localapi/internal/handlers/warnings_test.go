package handlers

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestWarningsAreBounded: they are cut, and left out, as by a kube-apiserver.
func TestWarningsAreBounded(t *testing.T) {
	long := strings.Repeat("ü", 2000)
	for _, c := range []struct {
		name  string
		texts []string
		want  []string
	}{
		{"each once", []string{"a", "b", "a", ""}, []string{"a", "b"}},
		{"just enough", []string{long, long + "x"}, []string{long, long + "x"}},
		{
			"too much",
			[]string{"a", long, long + "x", long + "y", "b"},
			[]string{"a", long[:2*256], long[:2*256], long[:2*256], "b"},
		},
	} {
		var w warnings
		for _, text := range c.texts {
			w.add(text)
		}
		if !slices.Equal(w.texts, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, w.texts, c.want)
		}
	}
	var w warnings
	for i := range 150_000 {
		w.add(fmt.Sprintf("unknown field %q", fmt.Sprint("spec.f", i)))
	}
	h := http.Header{}
	w.header(h)
	runes := 0
	for _, text := range w.texts {
		runes += utf8.RuneCountInString(text)
	}
	if n := len(h["Warning"]); n != len(w.texts) || runes < mostRunes || runes > mostRunes+runesOfOne {
		t.Errorf("%d warnings with %d runes, %d of them in the header", len(w.texts), runes, n)
	}
}
