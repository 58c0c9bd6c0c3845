package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
)

const page = "03-reflector"

// typed runs the experiment with words that are typed two seconds apart. It returns what the screen shows.
func typed(t *testing.T, words ...string) string {
	t.Helper()
	var screen strings.Builder
	synctest.Test(t, func(t *testing.T) {
		in, keyboard := io.Pipe()
		ended := make(chan error) // of run
		go func() { ended <- run(t.Context(), in, &screen, func() float64 { return 0 }) }()
		for _, word := range words {
			time.Sleep(2 * time.Second)
			synctest.Wait() // Nobody else writes.
			fmt.Fprintln(&screen, word)
			fmt.Fprintln(keyboard, word)
		}
		time.Sleep(20 * time.Second)
		_ = keyboard.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return screen.String()
}

// after returns what the screen shows from a word on.
func after(screen, word string) string { return screen[strings.Index(screen, word+"\n"):] }

// TestChapter03Lab types what the chapter says.
func TestChapter03Lab(t *testing.T) {
	t.Run("cut", func(t *testing.T) {
		screen := typed(t, "write", "cut")
		if !strings.Contains(after(screen, "cut"), "0.8s  one object of the newest list: version 11") {
			t.Errorf("the reflector does not verify:\n%s", screen)
		}
		book.Trace(t, page, screen)
	})
	t.Run("gone", func(t *testing.T) {
		screen := after(typed(t, "write", "away", "write", "forget", "back"), "away")
		if !strings.Contains(screen, "list, not older than 11") {
			t.Errorf("the reflector does not list:\n%s", screen)
		}
		book.Trace(t, page, screen)
	})
	t.Run("restore", func(t *testing.T) {
		screen := after(typed(t, "write", "backup", "write", "write", "restore"), "backup")
		if !strings.Contains(after(screen, "restore"), "the copy has web-1, at version 11") {
			t.Errorf("the copy has what is not on the server:\n%s", screen)
		}
		book.Trace(t, page, screen)
	})
}
