package clientgo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	peer "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer"
)

func (s *sharedInformer) AddEventHandler(h ResourceEventHandler) (ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(h, HandlerOptions{})
}

func (s *sharedInformer) AddEventHandlerWithResyncPeriod(h ResourceEventHandler,
	resync time.Duration,
) (ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(h, HandlerOptions{ResyncPeriod: &resync})
}

// AddEventHandlerWithOptions adds a handler that gets every update. The Logger is used if the handler panics.
func (s *sharedInformer) AddEventHandlerWithOptions(h ResourceEventHandler,
	o HandlerOptions,
) (ResourceEventHandlerRegistration, error) {
	log := klog.Background()
	if o.Logger != nil {
		log = *o.Logger
	}
	resync := s.o.ResyncPeriod
	if o.ResyncPeriod != nil {
		resync = *o.ResyncPeriod
	}
	if resync > 0 && s.o.ResyncPeriod == 0 {
		log.Info("Warning: the specified resyncPeriod is invalid because this shared informer doesn't support "+
			"resyncing", "desired", resync)
		resync = 0
	}
	s.mu.Lock()
	early := !s.started
	s.handlers++
	name := fmt.Sprintf("%T-%s", h, strconv.Itoa(s.handlers))
	s.mu.Unlock()
	d := &delivery{to: h, log: log, early: early}
	r, err := s.inf.AddHandler(
		informer.Handler[held]{OnAdd: d.add, OnUpdate: d.update, OnDelete: d.delete},
		informer.HandlerOptions{Name: name, Resync: resync, MaxLag: -1},
	)
	if err != nil { // The only error is that the informer has stopped.
		return nil, fmt.Errorf("handler %v was not added to shared informer because it has stopped already", h)
	}
	return &registration{r, s}, nil
}

// delivery calls a handler of client-go's type.
//
// A panic is handled as in client-go: utilruntime.HandleCrash calls the program's panic handlers and panics again,
// which ends the process. If ReallyCrash is false, it does not panic again, and delivery goes on with the next
// notification a second later.
//
// Concurrency: the core makes one call at a time.
//
// Source: processorListener.run in k8s.io/client-go/tools/cache v0.37.2.
type delivery struct {
	to  ResourceEventHandler
	log klog.Logger
	// early is true if the handler was added before the informer ran. Such a handler gets no OnAdd for objects that a
	// program, such as a test of a controller, wrote into the store.
	early bool
	// crashed is true if the last call panicked.
	crashed bool
}

// call calls f, which calls the handler.
func (d *delivery) call(f func()) {
	if d.crashed {
		time.Sleep(time.Second)
	}
	d.crashed = true
	defer utilruntime.HandleCrashWithLogger(d.log)
	f()
	d.crashed = false
}

func (d *delivery) add(h held, initial bool) {
	if d.early && h.from == fromWrite {
		return
	}
	d.call(func() { d.to.OnAdd(h.Object, initial) })
}

func (d *delivery) update(old, h held) {
	if listedAgain(old, h) {
		return
	}
	d.call(func() { d.to.OnUpdate(old.Object, h.Object) })
}

func (d *delivery) delete(gone informer.Deleted[held]) {
	var obj any = gone.Object.Object
	if gone.Stale {
		obj = DeletedFinalStateUnknown{Key: gone.Key, Obj: gone.Object.Object}
	}
	d.call(func() { d.to.OnDelete(obj) })
}

// RemoveEventHandler removes the handler at once, as in client-go: it drops pending notifications, and does not wait
// for a running call. See [ShutDownEventHandler]. It ignores a handle of another informer.
func (s *sharedInformer) RemoveEventHandler(handle ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok {
		return fmt.Errorf("invalid key type %T", handle)
	}
	if r.of != s {
		return nil
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	err := s.inf.RemoveHandler(now, r.Registration)
	if dropped := (*informer.UndeliveredError)(nil); errors.As(err, &dropped) {
		return nil
	}
	return err
}

// registration is client-go's handle for a handler.
type registration struct {
	informer.Registration
	of *sharedInformer
}

func (r *registration) HasSyncedChecker() DoneChecker {
	return checker{r.of.String() + " handler " + r.Name(), r.Synced()}
}

// ShutdownChan returns the channel that ShutDownEventHandler waits for.
func (r *registration) ShutdownChan() <-chan struct{} { return r.Done() }

var _ peer.ResourceEventHandlerRegistration = (*registration)(nil)
