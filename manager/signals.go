package manager

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"k8s.io/klog/v2"
)

// SignalError is the cause of a context that was ended by a signal.
type SignalError struct{ Signal os.Signal }

// Error returns a text that names the signal.
func (e SignalError) Error() string { return fmt.Sprintf("received %v", e.Signal) }

// sameSignal is how long after the first signal further signals are ignored. A single request to stop often arrives
// twice: timeout of coreutils signals the process and then its process group, and a terminal's Ctrl-C may reach a
// process directly and again through its parent.
const sameSignal = time.Second

// SetupSignals returns a context that ends at the first SIGINT or SIGTERM, with a [SignalError] as its cause. Another
// signal, a second or more later, ends the process at once with status 1; work in flight is lost.
//
// release stops catching signals, and returns when no goroutine is left. Call it when the work is done. SetupSignals
// may be called several times: every context ends at the first signal.
func SetupSignals(parent context.Context) (ctx context.Context, release func()) {
	return setupSignals(parent, os.Exit)
}

func setupSignals(parent context.Context, exit func(int)) (context.Context, func()) {
	logger := klog.FromContext(parent)
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2) // capacity 2, because the runtime drops signals that do not fit
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	released := make(chan struct{}) // closed by release
	var wg sync.WaitGroup
	wg.Go(func() {
		watchSignals(signals, released, func(s os.Signal) {
			logger.Info("Stopping; another signal after a second or more exits immediately", "signal", s.String())
			cancel(SignalError{s})
		}, func(s os.Signal) {
			logger.Info("Exiting immediately, work in flight is lost", "signal", s.String())
			klog.Flush()
			exit(1)
		})
	})
	return ctx, sync.OnceFunc(func() {
		signal.Stop(signals)
		close(released)
		wg.Wait()
		cancel(nil)
	})
}

// watchSignals calls stop for the first signal, and end for the next one that arrives at least sameSignal later. It
// returns after that, or when released is closed.
func watchSignals(signals <-chan os.Signal, released <-chan struct{}, stop, end func(os.Signal)) {
	var first time.Time
	for {
		select {
		case s := <-signals:
			switch {
			case first.IsZero():
				first = time.Now()
				stop(s)
			case time.Since(first) >= sameSignal:
				end(s)
				return
			}
		case <-released:
			return
		}
	}
}
