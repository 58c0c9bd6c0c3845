package storyteller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/flyball-dev/flyball/localapi/audit"
)

// Teller prints a story. Only one goroutine may use it.
type Teller struct {
	out io.Writer
	// shown counts the calls of Show.
	shown int
}

// New returns a Teller that prints to out.
func New(out io.Writer) *Teller { return &Teller{out: out} }

// Tell runs play, and the functions of beside until play returns. At the end it prints how many things were shown,
// followed by ending.
func (t *Teller) Tell(ctx context.Context, ending string, play func() error,
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
		fmt.Fprintf(t.out, "\nShown in %.0f s: %d things %s\n", time.Since(begin).Seconds(), t.shown, ending)
	}
	stop()
	for range beside {
		err = errors.Join(err, <-ended)
	}
	return err
}

// Say prints what happens next.
func (t *Teller) Say(format string, args ...any) { fmt.Fprintf(t.out, "\n"+format+"\n", args...) }

// Note prints an observation that is not counted.
func (t *Teller) Note(format string, args ...any) { fmt.Fprintf(t.out, "    "+format+"\n", args...) }

// Show prints an observation, and counts it.
func (t *Teller) Show(format string, args ...any) {
	t.shown++
	fmt.Fprintf(t.out, "  ✓ "+format+"\n", args...)
}

// Await waits until something is true, and shows it.
func (t *Teller) Await(ctx context.Context, what string, ask func() (so bool, how string, err error)) error {
	how, err := Wait(ctx, what, ask)
	if err == nil {
		t.Show("%-40s %s", what, how)
	}
	return err
}

// patience is how long anything may take.
const patience = 30 * time.Second

// Wait polls ask until it returns true, and returns its description.
func Wait(ctx context.Context, what string, ask func() (so bool, how string, err error)) (string, error) {
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

// Idle waits for settle, so that writes under way can arrive, and then shows that nothing is written for three seconds.
func (t *Teller) Idle(log *audit.Log, settle time.Duration) error {
	time.Sleep(settle)
	log.Reset()
	time.Sleep(3 * time.Second)
	if writes := log.Writes(); len(writes) > 0 {
		return fmt.Errorf("in three seconds in which nothing happens, this is written: %v", writes)
	}
	t.Show("nothing is written in three seconds")
	return nil
}
