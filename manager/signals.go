package manager

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"k8s.io/klog/v2"
)

// SignalError is the cause of a context that a signal ended.
type SignalError struct{ Signal os.Signal }

// Error names the signal.
func (e SignalError) Error() string { return fmt.Sprintf("received %v", e.Signal) }

// SetupSignals returns a context that the first SIGINT or SIGTERM ends, with a [SignalError] as its cause. The second one ends the
// process at once, with status 1: what was in flight is lost.
//
// release gives the signals back and returns when no goroutine is left; call it when the work is done. Calling SetupSignals
// several times is fine: every context ends with the first signal.
func SetupSignals(parent context.Context) (ctx context.Context, release func()) {
	return setupSignals(parent, os.Exit)
}

func setupSignals(parent context.Context, exit func(int)) (context.Context, func()) {
	logger := klog.FromContext(parent)
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2) // sent to by the runtime, which drops what does not fit: room for both
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	released := make(chan struct{}) // closed by release
	var wg sync.WaitGroup
	wg.Go(func() {
		for first := true; ; first = false {
			select {
			case s := <-signals:
				if !first {
					logger.Info("Ending at once: what was in flight is lost", "signal", s.String())
					klog.Flush()
					exit(1)
					return // only in tests, where exit does not end the process
				}
				logger.Info("Stopping; another signal ends the process at once", "signal", s.String())
				cancel(SignalError{s})
			case <-released:
				return
			}
		}
	})
	return ctx, sync.OnceFunc(func() {
		signal.Stop(signals)
		close(released)
		wg.Wait()
		cancel(nil)
	})
}
