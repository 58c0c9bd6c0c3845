// Package learn serves the documentation to a browser on this machine. Where the text says "watch it happen", the
// reader gets a button, which plays the demo in this process and opens its page.
package learn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/flyball-dev/flyball"
	"github.com/flyball-dev/flyball/cmd/flyball/demo"
	"github.com/flyball-dev/flyball/cmd/flyball/site"
	"github.com/flyball-dev/flyball/internal/loopback"
)

// DefaultAddress is where the documentation is served unless the command line says otherwise.
const DefaultAddress = "127.0.0.1:6070"

// Options configures [Run].
type Options struct {
	// Address is the loopback address to serve at.
	Address string
	// Dir is a checkout of the repository whose documentation is shown as it is at the moment. Empty means the
	// documentation in this binary.
	Dir string
	// Output is a folder into which the pages are written, instead of being served. Empty means to serve.
	Output string
	// Open opens the book in the browser of the desktop.
	Open bool
	Out  io.Writer
}

// Validate returns an error if an option is invalid.
func (o Options) Validate() error {
	if err := loopback.Check("--address", o.Address); err != nil {
		return err
	}
	if o.Dir == "" {
		return nil
	}
	if _, err := os.Stat(path.Join(o.Dir, "docs", "book")); err != nil {
		return fmt.Errorf("--dir %s: it must be a checkout of Flyball: %w", o.Dir, err)
	}
	return nil
}

// docs returns the documentation to show.
func (o Options) docs() fs.FS {
	if o.Dir != "" {
		return os.DirFS(o.Dir)
	}
	return flyball.Docs
}

// watchPath is where the pages send the wish to see a demo.
const watchPath = "/watch"

// Run serves the documentation until ctx is done, or writes it. Demos that run end before Run returns.
//
// Errors: an invalid option; documentation that cannot be rendered; an address or a folder that cannot be used.
func Run(ctx context.Context, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	options := site.Options{Watch: watchPath}
	built := os.DirFS(filepath.Join(cmp.Or(o.Dir, "."), "bin", "book"))
	if o.Output != "" {
		options.Watch, built = "", os.DirFS(o.Output)
	}
	_, err := fs.Stat(built, site.Try)
	options.Try = err == nil
	rendered, err := site.New(o.docs(), options)
	if err != nil {
		return err
	}
	if o.Output != "" {
		if err := rendered.WriteTo(o.Output); err != nil {
			return fmt.Errorf("write the pages: %w", err)
		}
		_, err := fmt.Fprintf(o.Out, "%d files are in %s; open %s\n", len(rendered.Names()), o.Output,
			path.Join(o.Output, site.Index))
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Address)
	if err != nil {
		return fmt.Errorf("serve at %s: %w; --address names another", o.Address, err)
	}
	s := &server{
		ctx: ctx, host: listener.Addr().String(), site: rendered, options: options, built: http.FileServerFS(built),
	}
	if o.Dir != "" {
		s.docs = o.docs()
	}
	h := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		_ = h.Close()
	}()
	fmt.Fprintf(o.Out, "The documentation is at http://%s/ until Ctrl-C.\n", s.host)
	var browser sync.WaitGroup
	defer browser.Wait()
	if o.Open {
		browser.Go(func() {
			if err := browse(ctx, "http://"+s.host+"/"); err != nil && ctx.Err() == nil {
				fmt.Fprintf(o.Out, "No browser could be opened: %v\n", err)
			}
		})
	}
	err = h.Serve(listener)
	if ctx.Err() != nil {
		<-stopped
		err = nil
	}
	s.stopDemo()
	return err
}

// browse opens a page in the browser of the desktop, and may return only when that ends.
func browse(ctx context.Context, url string) error {
	switch runtime.GOOS {
	case "darwin":
		return exec.CommandContext(ctx, "open", url).Run()
	case "windows":
		return exec.CommandContext(ctx, "rundll32", "url.dll,FileProtocolHandler", url).Run()
	}
	return exec.CommandContext(ctx, "xdg-open", url).Run()
}

// server answers requests for pages and for demos.
type server struct {
	ctx     context.Context // done when the server stops
	host    string
	site    *site.Site
	options site.Options
	docs    fs.FS        // if not nil, it is rendered for every page
	built   http.Handler // has the playground, if that was built

	mu sync.Mutex
	// stop ends the demo that runs, and returns when it has ended; nil if none runs.
	stop func()
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", site.Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	switch {
	case !s.ours(r.Host):
		http.Error(w, "this server is asked for by its address: http://"+s.host+"/", http.StatusMisdirectedRequest)
	case r.URL.Path == watchPath:
		s.watch(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "pages are read only", http.StatusMethodNotAllowed)
	case !strings.HasPrefix(r.URL.Path, "/"+path.Dir(site.Try)+"/"):
		s.page(w, r)
	case !s.options.Try:
		http.Error(w, "the playground is not built: run make playground in a checkout of Flyball, and then flyball "+
			"learn in the same folder", http.StatusNotFound)
	default:
		h.Set("Content-Security-Policy", "frame-ancestors 'none'") // The page has a policy of its own.
		s.built.ServeHTTP(w, r)
	}
}

// ours reports whether a host is this machine. A page of another site could otherwise be given the server's address by
// a name of its own.
func (s *server) ours(host string) bool {
	_, port, _ := net.SplitHostPort(s.host)
	return host == s.host || host == "localhost:"+port
}

// page sends a file of the site.
func (s *server) page(w http.ResponseWriter, r *http.Request) {
	rendered := s.site
	if s.docs != nil {
		var err error
		options := s.options
		options.Progress = progress(s.docs)
		if rendered, err = site.New(s.docs, options); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	rendered.ServeHTTP(w, r)
}

// progress returns what make learn has recorded in a checkout, or nil.
func progress(docs fs.FS) (states map[string]string) {
	text, err := fs.ReadFile(docs, "bin/learn.json")
	if err == nil {
		_ = json.Unmarshal(text, &states) // make learn replaces a file that is not JSON.
	}
	return states
}

// watch starts a demo and sends the reader to its page. A demo that runs is ended first.
func (s *server) watch(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "a demo is started with POST", http.StatusMethodNotAllowed)
		return
	}
	if origin := r.Header.Get("Origin"); origin != "http://"+r.Host {
		http.Error(w, "a demo is started from the pages of this server only", http.StatusForbidden)
		return
	}
	o := demo.Options{
		Speed: 1, Timeout: time.Minute, Page: "127.0.0.1:0", Step: true, Scenario: r.FormValue("scenario"),
		Book: site.Handler(flyball.Docs), Out: io.Discard,
	}
	if err := o.Validate(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	url, err := s.startDemo(r.Context(), o)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	http.Redirect(w, r, url, http.StatusSeeOther)
}

// startDemo starts a demo and returns the URL of its page when the page is there.
func (s *server) startDemo(request context.Context, o demo.Options) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop()
	}
	ctx, cancel := context.WithCancel(s.ctx)
	shown, ended := make(chan string, 1), make(chan error, 1)
	o.Shown = func(url string) { shown <- url }
	var demos sync.WaitGroup
	demos.Go(func() { ended <- demo.Run(ctx, o) })
	s.stop = func() {
		cancel()
		demos.Wait()
		s.stop = nil
	}
	select {
	case url := <-shown:
		return url, nil
	case err := <-ended:
		s.stop()
		return "", errors.Join(errors.New("the demo ended before it could be shown"), err)
	case <-request.Done():
		s.stop()
		return "", request.Err()
	}
}

// stopDemo ends the demo that runs, if any.
func (s *server) stopDemo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop()
	}
}
