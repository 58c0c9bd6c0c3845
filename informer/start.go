package informer

import "context"

// background is a run that Start began.
type background struct {
	stop context.CancelFunc
	// ended is closed by the goroutine of the run when it returns. Nothing is sent.
	ended chan struct{}
}

// Start runs the factory as [Factory.Run] does, but returns at once; [Factory.Shutdown] waits for the end. Call it
// once: informers that are asked for later start immediately. It does nothing if the factory runs already.
func (f *Factory) Start(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	b := &background{stop: stop, ended: make(chan struct{})}
	f.running, f.started = true, b
	go func() {
		defer close(b.ended)
		f.run(ctx)
	}()
}

// Shutdown ends what Start began. It returns when all informers have ended and the last calls of their handlers have
// returned, so a handler must not call it. Without Start it does nothing.
func (f *Factory) Shutdown() {
	f.mu.Lock()
	b := f.started
	f.mu.Unlock()
	if b != nil {
		b.stop()
		<-b.ended
	}
}
