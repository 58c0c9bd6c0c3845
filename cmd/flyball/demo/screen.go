package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen shows one line per step.
type screen struct {
	w io.Writer
	// width returns the columns of the terminal. It is nil if w is not a terminal; each step is then written once, when
	// it has ended.
	width func() int
	// drawn is the live line that is on the terminal; empty if there is none.
	drawn string
}

// newScreen returns a screen that shows steps live if w is a terminal.
func newScreen(w io.Writer) *screen {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return &screen{w: w}
	}
	return &screen{w: w, width: func() int {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
		return defaultWidth
	}}
}

const (
	titleWidth = 50
	textWidth  = 28
	barWidth   = 12
	// defaultWidth is the width of a terminal that does not report one. It is also the maximum width of a live line: a
	// line no wider than the usual window stays one line when the window is resized.
	defaultWidth = 80
	// fullWidth is the width of a step with its result on one line.
	fullWidth = 3 + titleWidth + 1 + textWidth + 1 + 50
)

// line is a step on the screen.
type line struct {
	screen *screen
	number int
	title  string
	last   progress
}

func (s *screen) begin(number int, title string) *line {
	return &line{screen: s, number: number, title: title}
}

// show draws the progress of the step if the screen is a terminal.
func (l *line) show(p progress) {
	l.last = p
	if l.screen.width == nil {
		return
	}
	width := min(l.screen.width(), defaultWidth) - 1 // some terminals wrap at the last column
	done := 0
	if p.want > 0 {
		done = barWidth * min(max(p.have, 0), p.want) / p.want
	}
	bar := " ▕" + strings.Repeat("█", done) + strings.Repeat("░", barWidth-done) + "▏ " + p.text
	l.screen.draw(cut(fit(fmt.Sprintf("%d  %s", l.number, l.title), width-utf8.RuneCountInString(bar))+bar, width))
}

// end replaces the live line of the step by its final line, with its result. It removes the line of a step that was
// stopped.
func (l *line) end(outcome outcome, c counts, took time.Duration) {
	l.screen.draw("")
	if outcome == stopped {
		return
	}
	behind := "FAILED after " + took.Round(time.Millisecond).String()
	if outcome == converged {
		behind = fmt.Sprintf("%s  %6s", c, took.Round(10*time.Millisecond))
	}
	width := fullWidth
	if l.screen.width != nil {
		width = l.screen.width()
	}
	if width >= fullWidth {
		fmt.Fprintf(l.screen.w, "%d  %-*s %-*s %s\n", l.number, titleWidth, l.title, textWidth, l.last.text, behind)
		return
	}
	width = min(width, defaultWidth)
	text := " " + l.last.text
	title := fit(fmt.Sprintf("%d  %-*s", l.number, titleWidth, l.title), width-1-utf8.RuneCountInString(text))
	fmt.Fprintf(l.screen.w, "%s\n%s\n", cut(title+text, width-1), cut("   "+behind, width-1))
}

// draw replaces the live line by text. If the live line was drawn in a wider window, it may now be wrapped, so draw
// clears all of its rows.
func (s *screen) draw(text string) {
	if s.width == nil || text == s.drawn {
		return
	}
	up := ""
	if rows := (utf8.RuneCountInString(s.drawn) - 1) / s.width(); rows > 0 {
		up = fmt.Sprintf("\x1b[%dA", rows)
	}
	fmt.Fprint(s.w, up, "\r\x1b[J", text)
	s.drawn = text
}

// fit shortens text to width: it removes trailing spaces first, then cuts the end.
func fit(text string, width int) string {
	for utf8.RuneCountInString(text) > width && strings.HasSuffix(text, " ") {
		text = text[:len(text)-1]
	}
	return cut(text, width)
}

// cut shortens text to width, and marks the cut with an ellipsis.
func cut(text string, width int) string {
	if runes := []rune(text); len(runes) > width {
		return string(runes[:max(width-1, 0)]) + "…"
	}
	return text
}
