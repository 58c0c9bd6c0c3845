package informer

import "context"

// background is a Run that Start began.
type background struct {
	stop context.CancelFunc
	// ended is closed by the Run's goroutine when it has returned; nothing is sent.
	ended chan struct{}
}

// Start runs the factory as [Factory.Run] does, without waiting for its end: that is the business of
// [Factory.Shutdown], without which nobody knows when it was. Once is enough: informers asked for later start at
// once. More often, and beside Run, it does nothing.
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

// Shutdown ends what Start began, and returns when all informers have ended and their handlers' last calls have
// returned. A handler must not call it. Without Start it does nothing.
func (f *Factory) Shutdown() {
	f.mu.Lock()
	b := f.started
	f.mu.Unlock()
	if b != nil {
		b.stop()
		<-b.ended
	}
}
