package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/flyball-dev/flyball/client"
)

// director plays a story on a cluster.
type director struct {
	client client.Client
	// look reads the caches.
	look func() state
	// changed receives a signal when a cache has changed. The caches' handlers send, and drop a signal if one is
	// already waiting; the channel has capacity 1 and is never closed.
	changed <-chan struct{}
	counts  func() counts
	screen  *screen
	timeout time.Duration // of each step
	// begin, if not nil, is called before each step. It may change timeout.
	begin func(step)
	// board is what the page shows.
	board *board
}

// telling is where the story is, as JSON for the page.
type telling struct {
	Steps []toldStep `json:"steps"`
	// At is the index of the present step; the number of steps after the last one.
	At int `json:"at"`
	// Text is how far the present step is, and Missing what is expected and not yet true.
	Text    string `json:"text"`
	Missing string `json:"missing,omitempty"`
	// Sum says what the whole story took; empty before its end.
	Sum string `json:"sum,omitempty"`
}

// toldStep is one step of a story.
type toldStep struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// Chapter is the page of the book that explains the step, without its ending.
	Chapter string `json:"chapter"`
}

// board is the story as the page shows it.
type board struct {
	mu    sync.Mutex
	story telling
}

func newBoard(steps []step) *board {
	b := &board{}
	for _, s := range steps {
		b.story.Steps = append(b.story.Steps, toldStep{Name: s.name, Title: s.title, Chapter: s.chapter})
	}
	return b
}

// show sets the present step, which is the number of steps after the last one, and its progress.
func (b *board) show(at int, p progress, sum string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.story.At, b.story.Text, b.story.Missing, b.story.Sum = at, p.text, p.missing, sum
}

// read returns what the page shows.
func (b *board) read() any {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.story
}

// counts are the sums over the pipeline's stages since the start.
type counts struct {
	watch, queue, sync uint64
	// watchOnly means that the controllers run elsewhere, so that only the watch events are counted.
	watchOnly bool
}

func (c counts) plus(o counts) counts {
	return counts{c.watch + o.watch, c.queue + o.queue, c.sync + o.sync, c.watchOnly}
}

func (c counts) minus(o counts) counts {
	return counts{c.watch - o.watch, c.queue - o.queue, c.sync - o.sync, c.watchOnly}
}

// String returns the counts in columns.
func (c counts) String() string {
	if c.watchOnly {
		return fmt.Sprintf("watch %4d", c.watch)
	}
	return fmt.Sprintf("watch %4d → queue %4d → sync %4d", c.watch, c.queue, c.sync)
}

// unmetError is the error of a step that did not reach its expected outcome.
type unmetError struct {
	step, missing string
	after         time.Duration
}

func (e *unmetError) Error() string {
	return fmt.Sprintf("%q did not converge within %s: expected %s", e.step, e.after, e.missing)
}

// errTooLong is the cause of a step's context that timed out, rather than ending with the demo.
var errTooLong = errors.New("the step took too long")

// errStopped is the error of a demo that the user stopped before the end of its story.
var errStopped = errors.New("stopped")

// outcome is how a step ended.
type outcome int

const (
	converged outcome = iota
	stopped           // the user stopped the demo
	failed
)

func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return converged
	case errors.Is(err, errStopped):
		return stopped
	}
	return failed
}

// play runs the steps in order, up to the first that fails.
func (d *director) play(ctx context.Context, steps []step) error {
	for i, s := range steps {
		if d.begin != nil {
			d.begin(s)
		}
		line := d.screen.begin(i+1, s.title)
		before, start := d.counts(), time.Now()
		err := d.step(ctx, s, line)
		line.end(outcomeOf(err), d.counts().minus(before), time.Since(start))
		if err != nil {
			return err
		}
	}
	return nil
}

// step runs s and waits until its outcome has lasted as long as it must.
func (d *director) step(ctx context.Context, s step, line *line) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d.timeout, errTooLong)
	defer cancel()
	if err := s.do(ctx, d.client); err != nil {
		if ctx.Err() != nil {
			return d.ended(ctx, s, "an answer of the API: "+err.Error())
		}
		return err
	}
	most := 0
	var met <-chan time.Time // fires when the outcome has lasted long enough; nil until the outcome is reached
	for {
		p := s.until(d.look())
		if most = max(most, p.left); p.want == 0 {
			p.have, p.want = most-p.left, most
		}
		line.show(p)
		d.board.show(line.number-1, p, "")
		switch {
		case p.missing != "":
			met = nil
		case s.hold == 0:
			return nil
		case met == nil:
			met = time.After(s.hold)
		}
		select {
		case <-d.changed:
		case <-met:
			return nil
		case <-ctx.Done():
			return d.ended(ctx, s, p.missing)
		}
	}
}

// ended returns the error of a step whose ctx ended before it was done.
func (d *director) ended(ctx context.Context, s step, missing string) error {
	if errors.Is(context.Cause(ctx), errTooLong) {
		return &unmetError{step: s.title, missing: missing, after: d.timeout}
	}
	return fmt.Errorf("%w at %q: %w", errStopped, s.title, context.Cause(ctx))
}

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
