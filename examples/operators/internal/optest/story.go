package optest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/localapi/audit"
)

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
