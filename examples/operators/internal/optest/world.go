package optest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi/audit"
)

// World is what a test of an operator works with: the test, a client that reads from the server, and what the operator
// writes. The zero values of the other fields are ready to use.
type World struct {
	*testing.T
	client.Client
	// Ctx is done when the test ends. Nothing is logged with it.
	Ctx context.Context
	Writes
}

// NewWorld returns the world of a test.
func NewWorld(t *testing.T, c client.Client) *World {
	return &World{T: t, Client: c, Ctx: klog.NewContext(t.Context(), klog.Logger{})}
}

// Must ends the test if err is an error.
func (w *World) Must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// Go calls run in a goroutine. stop cancels it and waits for its end, and must be called before the test ends. A second
// call does nothing.
func (w *World) Go(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(w.Ctx)
	done := make(chan error, 1) // the result of run, from the goroutine below
	go func() {
		defer close(done)
		done <- run(ctx)
	}()
	return func() {
		w.Helper()
		cancel()
		if err := <-done; err != nil {
			w.Errorf("after the stop: %v", err)
		}
	}
}

// Eventually polls missing until it returns "", for two minutes.
func (w *World) Eventually(missing func() string) {
	w.Helper()
	w.Within(2*time.Minute, missing)
}

// Within polls missing until it returns "". When the time is over, it fails the test with the last result.
func (w *World) Within(d time.Duration, missing func() string) {
	w.Helper()
	for deadline := time.Now().Add(d); ; time.Sleep(20 * time.Millisecond) {
		text := missing()
		switch {
		case text == "":
			return
		case time.Now().After(deadline):
			w.Fatal(text)
		}
	}
}

// Until polls holds until it returns true.
func (w *World) Until(what string, holds func() bool) {
	w.Helper()
	w.Within(5*time.Minute, func() string {
		if holds() {
			return ""
		}
		return "not in time: " + what
	})
}

// Settle waits until nothing has been written for some time.
func (w *World) Settle(quiet time.Duration) {
	w.Helper()
	w.Eventually(func() string {
		w.Take()
		time.Sleep(quiet)
		return w.left("there are still writes")
	})
}

// Idle waits until writes have stopped, and then fails the test if anything is written.
func (w *World) Idle(quiet, idle time.Duration) {
	w.Helper()
	w.Settle(quiet)
	time.Sleep(idle)
	if text := w.left("idle for " + idle.String() + ", and yet"); text != "" {
		w.Error(text)
	}
}

// Writes records what an operator writes, without events and leases. The zero value is empty and ready to use.
//
// Concurrency: all methods may be called from any goroutine.
type Writes struct {
	mu  sync.Mutex
	all []string
}

// Wrap is for rest.Config.Wrap.
func (w *Writes) Wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		if path := r.URL.Path; r.Method != http.MethodGet && !strings.Contains(path, "/events") &&
			!strings.Contains(path, "/leases") {
			w.mu.Lock()
			w.all = append(w.all, r.Method+" "+path)
			w.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

// Take returns what was written since the last call.
func (w *Writes) Take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

// left takes the writes, and describes them; without any it returns "".
func (w *Writes) left(what string) string {
	if all := w.Take(); len(all) > 0 {
		return fmt.Sprintf("%s: %q", what, all)
	}
	return ""
}

// RoundTripper is a function that implements http.RoundTripper.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Story plays a demo of an operator in virtual time. play changes something, waits for the operator's reaction and
// shows it; if a step does not happen, it returns an error. Beside it run the functions that it passes to Tell. The
// story must show the given number of things. go test -v prints it.
func Story(t *testing.T, things int, tell func(t *testing.T, s *Teller) error) {
	t.Helper()
	s := &Teller{out: io.Discard}
	if testing.Verbose() {
		s.out = os.Stdout
	}
	synctest.Test(t, func(t *testing.T) {
		if err := tell(t, s); err != nil {
			t.Fatal(err)
		}
	})
	if s.shown != things {
		t.Errorf("%d things are shown, want %d", s.shown, things)
	}
}

// Teller prints a story. A nil Teller prints nothing. Only one goroutine may use it.
type Teller struct {
	out io.Writer
	// shown counts the calls of Show.
	shown int
}

// Tell runs play, and the functions of beside until play returns. At the end it prints how many things were shown,
// followed by ending.
func (s *Teller) Tell(ctx context.Context, ending string, play func() error,
	beside ...func(context.Context) error,
) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	begin, ended := time.Now(), make(chan error, len(beside)) // the errors of beside, each from its goroutine
	for _, run := range beside {
		go func() { ended <- run(ctx) }()
	}
	err := play()
	if err == nil {
		fmt.Fprintf(s.out, "\nShown in %.0f s: %d things %s\n", time.Since(begin).Seconds(), s.shown, ending)
	}
	stop()
	for range beside {
		err = errors.Join(err, <-ended)
	}
	return err
}

// Say prints what happens next.
func (s *Teller) Say(format string, args ...any) { s.print("\n"+format+"\n", args) }

// Note prints an observation that is not counted.
func (s *Teller) Note(format string, args ...any) { s.print("    "+format+"\n", args) }

// Show prints an observation, and counts it.
func (s *Teller) Show(format string, args ...any) {
	s.print("  ✓ "+format+"\n", args)
	if s != nil {
		s.shown++
	}
}

func (s *Teller) print(format string, args []any) {
	if s != nil {
		fmt.Fprintf(s.out, format, args...)
	}
}

// Await waits until something is true, and shows it.
func (s *Teller) Await(ctx context.Context, what string, ask func() (so bool, how string, err error)) error {
	how, err := Wait(ctx, what, 30*time.Second, ask)
	if err == nil {
		s.Show("%-40s %s", what, how)
	}
	return err
}

// Idle waits for settle, so that writes under way can arrive, and then shows that nothing is written for three seconds.
func (s *Teller) Idle(settle time.Duration, logs ...*audit.Log) error {
	time.Sleep(settle)
	for _, log := range logs {
		log.Reset()
	}
	time.Sleep(3 * time.Second)
	for _, log := range logs {
		if writes := log.Writes(); len(writes) > 0 {
			return fmt.Errorf("in three seconds in which nothing happens, this is written: %v", writes)
		}
	}
	s.Show("nothing is written in three seconds")
	return nil
}

// Wait polls ask until it returns true, and returns its description.
func Wait(ctx context.Context, what string, patience time.Duration, ask func() (so bool, how string, err error)) (
	how string, err error,
) {
	for deadline := time.Now().Add(patience); ; {
		so, how, err := ask()
		switch {
		case err != nil:
			return "", fmt.Errorf("%s: %w", what, err)
		case so:
			return how, nil
		case time.Now().After(deadline):
			return "", fmt.Errorf("%s: it is not so: %s", what, how)
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Refuses runs a command with each of the command lines, and checks that it fails with the given error.
func Refuses(t *testing.T, run Command, says map[string]string) {
	t.Helper()
	for line, want := range says {
		if err := run(t.Context(), strings.Fields(line), io.Discard); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", line, err, want)
		}
	}
}
