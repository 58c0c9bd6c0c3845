package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/cmd/flyball/demo"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/playground/script"
	"github.com/flyball-dev/flyball/playground/terminal"
)

// historyBytes bounds the past writes that the API keeps: a tab has less memory than a server.
const historyBytes = 8 << 20

// mostManifest bounds the bytes of what the editor sends, mostScript those of a controller.
const mostManifest, mostScript = 16 << 20, 1 << 20

// run plays a scenario of the demo, or none if its name is empty, until ctx is done. It has serve send requests to its
// handler, and pass on at once what that writes.
func run(ctx context.Context, scenario string, serve func(http.Handler)) error {
	p := &process{log: newLog(2000)}
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(flags)
	if err := flags.Parse([]string{"-logtostderr=false", "-one_output", "-v=2"}); err != nil {
		return err
	}
	klog.SetOutput(p.log)
	var failed error
	o := demo.Options{
		Speed: 1, Timeout: time.Hour, Step: true, Scenario: scenario, NoStory: scenario == "", Out: io.Discard,
		API: localapi.Options{HistoryBytes: historyBytes},
		// The page needs no handler of the book: its links lead to the book beside the playground.
		Book: http.NotFoundHandler(),
		Add:  p.add,
	}
	o.Here = func(h demo.Here) {
		if p.terminal, failed = terminal.New(h.API, terminal.Options{Logs: p.log.copy}); failed == nil {
			p.restart = h.Restart
			serve(p.handler(h.Page))
		}
	}
	if err := demo.Run(ctx, o); err != nil {
		return err
	}
	return failed
}

// process is the program behind the page.
type process struct {
	log      *log
	terminal *terminal.Terminal
	restart  func() // ends the program of the controllers, and starts it again

	mu     sync.Mutex
	script *script.Controller // nil if there is none
}

// add adds the reader's controller to the manager of the controllers.
func (p *process) add(m *manager.Manager) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.script == nil {
		return nil
	}
	return p.script.Add(m)
}

// handler answers:
//
//	/inspect/               the page of package inspect
//	POST /command?line=L    what a command of the terminal prints, as it comes; the body is what the editor has
//	POST /controller        a script that is to run in place of the one before; none if the body is empty
func (p *process) handler(page http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/inspect/", page)
	mux.HandleFunc("POST /command", func(w http.ResponseWriter, r *http.Request) {
		p.terminal.Run(r.Context(), r.URL.Query().Get("line"), http.MaxBytesReader(w, r.Body, mostManifest), w)
	})
	mux.HandleFunc("POST /controller", func(w http.ResponseWriter, r *http.Request) {
		source, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostScript))
		if err == nil {
			err = p.use(string(source))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	return mux
}

// use makes a script the reader's controller, in a new life of the controllers' program.
func (p *process) use(source string) error {
	var c *script.Controller
	if source != "" {
		var err error
		if c, err = script.Compile(source); err != nil {
			return err
		}
		for _, kind := range c.Kinds() {
			if _, err := p.terminal.Serves(kind); err != nil {
				return err
			}
		}
	}
	p.mu.Lock()
	p.script = c
	p.mu.Unlock()
	p.restart()
	return nil
}

// log keeps the last lines that were logged.
//
// Concurrency: all methods may be called from any goroutine.
type log struct {
	most int

	mu    sync.Mutex
	lines []string      // oldest first
	count int           // of all lines so far
	more  chan struct{} // closed at the next line
}

func newLog(most int) *log { return &log{most: most, more: make(chan struct{})} }

// mostLine bounds a line in bytes.
const mostLine = 4 << 10

// Write implements [io.Writer]. klog writes whole lines.
func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := strings.TrimSuffix(string(b[:min(len(b), mostLine)]), "\n")
	l.lines = append(l.lines[max(0, len(l.lines)+1-l.most):], line)
	l.count++
	close(l.more)
	l.more = make(chan struct{})
	return len(b), nil
}

// copy implements [terminal.Options.Logs].
func (l *log) copy(ctx context.Context, out io.Writer, text string, follow bool) error {
	for number := 0; ; { // of the next line
		l.mu.Lock()
		lines, more := slices.Clone(l.lines[max(0, len(l.lines)-(l.count-number)):]), l.more
		number = l.count
		l.mu.Unlock()
		for _, line := range lines {
			if strings.Contains(line, text) {
				if _, err := fmt.Fprintln(out, line); err != nil {
					return err
				}
			}
		}
		if !follow {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil
		}
	}
}
