package multicluster

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client/events"
)

// caches are the goroutines of a cluster: its informers, and the sender of events once there are any. They run until
// the cluster has drained, because reconciles that finish meanwhile still read and record events.
type caches struct {
	informers sync.WaitGroup
	stop      context.CancelFunc

	mu     sync.Mutex
	closed bool
	// stopSender stops the sender of events and waits until it has sent the rest. It is nil until somebody records an
	// event.
	stopSender func()
}

// startCaches runs the informers of a cluster until end is called.
func startCaches(life context.Context, c *Cluster) *caches {
	own, stop := context.WithCancel(context.WithoutCancel(life))
	k := &caches{stop: stop}
	k.informers.Go(func() { _ = c.informers.Run(own) }) // It fails only when it was run before.
	c.recorders.start = func() func(string) events.Recorder { return k.startEvents(own, c) }
	return k
}

// startEvents starts the sender of events.
func (k *caches) startEvents(ctx context.Context, c *Cluster) func(component string) events.Recorder {
	sender, err := events.New(c.config, events.Options{Scheme: c.Scheme()})
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil || k.closed {
		klog.FromContext(ctx).Info("Cannot record events in a cluster; dropping them", "err", err)
		return func(string) events.Recorder { return discardEvents{} }
	}
	own, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := sender.Run(own); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot send events of a cluster")
		}
	})
	k.stopSender = func() { stop(); running.Wait() }
	return sender.Recorder
}

// endSender sends the events that are left. Later ones are lost.
func (k *caches) endSender() {
	k.mu.Lock()
	end := k.stopSender
	k.stopSender, k.closed = nil, true
	k.mu.Unlock()
	if end != nil {
		end()
	}
}

// end stops everything, and returns when all has stopped.
func (k *caches) end() {
	k.endSender()
	k.stop()
	k.informers.Wait()
}

// discardEvents drops the events of a cluster that has departed.
type discardEvents struct{}

// Event implements events.Recorder.
func (discardEvents) Event(runtime.Object, string, string, string) {}

// Eventf implements events.Recorder.
func (discardEvents) Eventf(runtime.Object, string, string, string, ...any) {}

// AnnotatedEventf implements events.Recorder.
func (discardEvents) AnnotatedEventf(runtime.Object, map[string]string, string, string, string, ...any) {
}
