package inspect

import (
	"slices"
	"testing"
)

// FuzzAlign: the rows hold both texts, in order, and rows that are the same are.
func FuzzAlign(f *testing.F) {
	f.Add("abcdef", "abxdef")
	f.Add("", "abc")
	f.Add("aaaa", "aa")
	f.Add("abcabc", "cbacba")
	f.Fuzz(func(t *testing.T, a, b string) {
		left, right := letters(a), letters(b)
		var first, second []string
		same := 0
		for _, r := range align(left, right) {
			if r.Cached != nil {
				first = append(first, *r.Cached)
			}
			switch {
			case r.Same:
				same++
				second = append(second, *r.Cached)
			case r.Live != nil:
				second = append(second, *r.Live)
			}
		}
		if !slices.Equal(first, left) || !slices.Equal(second, right) {
			t.Errorf("align(%q, %q) has %q and %q", left, right, first, second)
		}
		if slices.Equal(left, right) && same != len(left) {
			t.Errorf("%d of %d rows are the same", same, len(left))
		}
	})
}

func letters(s string) (lines []string) {
	for _, r := range s {
		lines = append(lines, string(r))
	}
	return lines
}

func TestAlign(t *testing.T) {
	rows := align([]string{"a", "b", "c", "d"}, []string{"a", "x", "y", "c", "d"})
	want := "a= b/x /y c= d="
	got := ""
	for _, r := range rows {
		cell := func(s *string) string {
			if s == nil {
				return ""
			}
			return *s
		}
		if got != "" {
			got += " "
		}
		if r.Same {
			got += cell(r.Cached) + "="
		} else {
			got += cell(r.Cached) + "/" + cell(r.Live)
		}
	}
	if got != want {
		t.Errorf("rows %q, want %q", got, want)
	}
}

// TestDropEmpty: what a Go type adds to a state is no difference; what the server has is.
func TestDropEmpty(t *testing.T) {
	cached := map[string]any{
		"status": map[string]any{}, "metadata": map[string]any{"creationTimestamp": nil, "name": "a"},
		"list": []any{map[string]any{"resources": map[string]any{}, "image": "b"}}, "zero": int64(0), "kept": int64(0),
	}
	live := map[string]any{
		"metadata": map[string]any{"name": "a"}, "list": []any{map[string]any{"image": "b"}}, "kept": int64(1),
	}
	dropEmpty(cached, live)
	left, _ := yamlLines(cached)
	right, _ := yamlLines(live)
	different := 0
	for _, r := range align(left, right) {
		if !r.Same {
			different++
		}
	}
	if different != 1 {
		t.Errorf("%d rows differ, want that of kept alone: %q and %q", different, left, right)
	}
}

// TestHide: values become words, which tell only whether a value is another.
func TestHide(t *testing.T) {
	cached := map[string]any{"data": map[string]any{"same": "1", "other": "2", "old": "3"}}
	live := map[string]any{"data": map[string]any{"same": "1", "other": "x", "new": "4"}, "stringData": "odd"}
	hide(cached, live)
	left, _ := yamlLines(cached)
	right, _ := yamlLines(live)
	if want := []string{
		"data:", "  old: (not shown)", "  other: (not shown)", "  same: (not shown)",
	}; !slices.Equal(left, want) {
		t.Errorf("cached: %q", left)
	}
	if want := []string{
		"data:", "  new: (not shown)", "  other: (not shown; another value)", "  same: (not shown)", "stringData: {}",
	}; !slices.Equal(right, want) {
		t.Errorf("live: %q", right)
	}
}
