package demo

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// screen shows a line per step.
type screen interface {
	begin(number int, title string) line
	// close returns when everything is written.
	close()
}

// line is a step on the screen.
type line interface {
	show(p progress)
	end(err error, c counts, took time.Duration)
}

// newScreen is live bars if w is a terminal, plain lines otherwise.
func newScreen(w io.Writer) screen {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		return &bars{mpb.New(mpb.WithOutput(w), mpb.WithWidth(24), mpb.WithRefreshRate(80*time.Millisecond), mpb.WithAutoRefresh())}
	}
	return &lines{w}
}

const (
	titleWidth = 50
	textWidth  = 28
)

// summary is what stands behind a step that has ended.
func summary(err error, c counts, took time.Duration) string {
	if err != nil {
		return "FAILED after " + took.Round(time.Millisecond).String()
	}
	return fmt.Sprintf("watch %4d → queue %4d → sync %4d  %6s", c.watch, c.queue, c.sync, took.Round(10*time.Millisecond))
}

// lines writes each step once, when it has ended.
type lines struct{ w io.Writer }

func (l *lines) begin(number int, title string) line {
	return &plainLine{w: l.w, number: number, title: title}
}
func (l *lines) close() {}

type plainLine struct {
	w      io.Writer
	number int
	title  string
	last   progress
}

func (l *plainLine) show(p progress) { l.last = p }

func (l *plainLine) end(err error, c counts, took time.Duration) {
	fmt.Fprintf(l.w, "%d  %-*s %-*s %s\n", l.number, titleWidth, l.title, textWidth, l.last.text, summary(err, c, took))
}

// bars shows each step as a bar that moves while the step runs.
type bars struct{ p *mpb.Progress }

func (b *bars) begin(number int, title string) line {
	l := &barLine{} // its total is 0 at first, so that only end completes it
	l.bar = b.p.New(0, mpb.BarStyle().Lbound("▕").Filler("█").Tip("█").Padding("░").Rbound("▏"),
		mpb.PrependDecorators(decor.Name(fmt.Sprintf("%d  %-*s ", number, titleWidth, title))),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return l.suffix() })))
	return l
}

// close waits until the last state of every bar is on the terminal.
func (b *bars) close() { b.p.Wait() }

type barLine struct {
	bar *mpb.Bar

	mu   sync.Mutex
	text string // read by the bars' own goroutine
}

func (l *barLine) suffix() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return " " + l.text
}

func (l *barLine) say(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = text
}

func (l *barLine) show(p progress) {
	l.say(p.text)
	l.bar.SetTotal(int64(max(p.want, 1)), false)
	l.bar.SetCurrent(int64(min(p.have, p.want)))
}

func (l *barLine) end(err error, c counts, took time.Duration) {
	l.mu.Lock()
	text := l.text
	l.mu.Unlock()
	l.say(fmt.Sprintf("%-*s %s", textWidth, text, summary(err, c, took)))
	if err != nil {
		l.bar.Abort(false)
		return
	}
	l.bar.SetTotal(1, true)
}
