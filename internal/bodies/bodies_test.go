package bodies

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestBudget: bodies fit until all have as many bytes as they may. What is released, or refused, makes room again, and
// what a reader has not given yet takes none.
func TestBudget(t *testing.T) {
	b := New(100)
	read := func(size int) (func(), error) {
		text, release, err := b.Read(strings.NewReader(strings.Repeat("x", size)), 60)
		if err == nil && len(text) != min(size, 61) {
			t.Errorf("%d bytes of %d were read", len(text), size)
		}
		return release, err
	}
	silent, _ := io.Pipe()
	go func() { _, _, _ = b.Read(silent, 60) }()
	defer silent.Close()
	var releases []func()
	for _, size := range []int{50, 80 - 61, 31} {
		release, err := read(size)
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
	}
	for range 2 {
		if _, err := read(1); !errors.Is(err, ErrFull) {
			t.Errorf("one byte more: %v, want %v", err, ErrFull)
		}
	}
	releases[0]()
	if release, err := read(50); err != nil {
		t.Errorf("after a body has gone: %v", err)
	} else {
		release()
	}
	if release, err := read(70); !errors.Is(err, ErrFull) {
		t.Errorf("a body that is too large for the room: %v", err)
		release()
	}
	for _, release := range releases[1:] {
		release()
	}
	if n := b.used.Load(); n != 0 {
		t.Errorf("%d bytes are counted, and nothing is under way", n)
	}
}

func ExampleNew() {
	b := New(1 << 20)
	text, release, err := b.Read(strings.NewReader("{}"), 1<<10)
	defer release()
	fmt.Println(string(text), err)
	// Output: {} <nil>
}
