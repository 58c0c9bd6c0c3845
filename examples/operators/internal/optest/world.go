package optest

import (
	"context"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
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
