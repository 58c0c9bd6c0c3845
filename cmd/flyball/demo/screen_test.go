package demo

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// terminal is what a person sees: rows that wrap at its width, and wrap anew when that changes, as those of tmux and
// most others do.
type terminal struct {
	width int
	// above are the lines that have ended; live is the one that the cursor is in, and row its place there.
	above []string
	live  []rune
	row   int
}

// Write understands what the screen sends.
func (t *terminal) Write(p []byte) (int, error) {
	for text := string(p); text != ""; {
		var up int
		switch {
		case strings.HasPrefix(text, "\x1b[J"):
			t.live, text = t.live[:min(len(t.live), t.row*t.width)], text[3:]
		case strings.HasPrefix(text, "\x1b["):
			if _, err := fmt.Sscanf(text, "\x1b[%dA", &up); err != nil {
				return 0, err
			}
			t.row -= up
			text = text[strings.Index(text, "A")+1:]
		case text[0] == '\r':
			text = text[1:]
		case text[0] == '\n':
			t.above, t.live, t.row, text = append(t.above, string(t.live)), nil, 0, text[1:]
		default:
			r, size := utf8.DecodeRuneInString(text)
			t.live, text = append(t.live, r), text[size:]
			t.row = (len(t.live) - 1) / t.width
		}
	}
	if t.row < 0 {
		return 0, errors.New("the cursor left its line")
	}
	return len(p), nil
}

// resize wraps anew.
func (t *terminal) resize(width int) {
	t.width = width
	t.row = max(len(t.live)-1, 0) / width
}

// tell plays two steps of a story, the second of which fails, and resizes the window in the middle of the first.
func tell(s *screen, resize func()) {
	counts := counts{watch: 1053, queue: 78, sync: 52}
	first := s.begin(1, "create Service and Deployment web: 5 × nginx:1.28")
	for have := range 6 {
		first.show(progress{have: have, want: 5, text: fmt.Sprintf("%d/5 available, 1 cannot start", have)})
		if have == 3 {
			resize()
		}
	}
	first.end(converged, counts, 580*time.Millisecond)
	second := s.begin(2, "roll out nginx:1.29")
	second.show(progress{have: 1, want: 5, text: "1/5 available"})
	second.end(failed, counts, time.Second)
}

// However wide the window is, and whatever becomes of that, each step is there once, with its times and counters.
func TestStepsAreShownOnceAtAnyWidth(t *testing.T) {
	for _, widths := range [][2]int{
		{200, 200},
		{120, 120},
		{80, 80},
		{120, 80},
		{80, 120},
		{200, 60},
		{60, 200},
		{100, 40},
	} {
		t.Run(fmt.Sprint(widths), func(t *testing.T) {
			seen := &terminal{width: widths[0]}
			s := &screen{w: seen, width: func() int { return seen.width }}
			tell(s, func() { seen.resize(widths[1]) })
			all := strings.Join(seen.above, "\n")
			for _, once := range []string{"1  creat", "2  roll out nginx:1.29", "watch", "FAILED after 1s"} {
				if strings.Count(all, once) != 1 {
					t.Errorf("%q is there %d times", once, strings.Count(all, once))
				}
			}
			if widths[1] >= 80 &&
				!(strings.Contains(all, "watch 1053 → queue   78 → sync   52   580ms") &&
					strings.Contains(all, "5/5 available")) {
				t.Error("counters are lost")
			}
			for _, line := range seen.above {
				if n := utf8.RuneCountInString(line); n >= widths[1] && widths[1] != 200 {
					t.Errorf("%d columns: %q", n, line)
				}
			}
			if len(seen.live) > 0 {
				t.Errorf("left on the terminal: %q", string(seen.live))
			}
			if t.Failed() {
				t.Log("\n" + all)
			}
		})
	}
}

// What is no terminal gets a line for each step, however long, and no control characters.
func TestStepsInAFile(t *testing.T) {
	var out bytes.Buffer
	tell(newScreen(&out), func() {})
	if text := out.String(); strings.Count(text, "\n") != 2 || strings.ContainsAny(text, "\x1b\r") ||
		!strings.Contains(text, "5/5 available, 1 cannot start watch 1053") {
		t.Errorf("wrote %q", text)
	}
}
