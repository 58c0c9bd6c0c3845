package multicluster

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client/events"
)

// caches is what runs for a cluster: its informers, and the sender of events when there are any. It lives longer than
// the cluster is Live: what drains still reads, and records events.
type caches struct {
	informers sync.WaitGroup
	stop      context.CancelFunc

	mu     sync.Mutex
	closed bool
	// sender ends when it has sent what there was; nil until somebody recorded an event.
	sender func()
}

// startCaches runs the informers of a cluster until end is called.
func startCaches(life context.Context, c *Cluster) *caches {
	own, stop := context.WithCancel(context.WithoutCancel(life))
	k := &caches{stop: stop}
	k.informers.Go(func() { _ = c.informers.Run(own) }) // It fails only when it was run before.
	c.recorders.start = func() func(string) events.Recorder { return k.record(own, c) }
	return k
}

// record starts the sender of events.
func (k *caches) record(ctx context.Context, c *Cluster) func(component string) events.Recorder {
	clients, err := c.Clientset()
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil || k.closed {
		klog.FromContext(ctx).Info("Events of a cluster are lost", "err", err)
		return func(string) events.Recorder { return lost{} }
	}
	sender := events.New(clients.CoreV1(), events.Options{Scheme: c.Scheme()})
	own, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := sender.Run(own); err != nil {
			klog.FromContext(ctx).Error(err, "Events of a cluster were not sent")
		}
	})
	k.sender = func() { stop(); running.Wait() }
	return sender.Recorder
}

// endSender sends what is left. Nothing is recorded after it.
func (k *caches) endSender() {
	k.mu.Lock()
	end := k.sender
	k.sender, k.closed = nil, true
	k.mu.Unlock()
	if end != nil {
		end()
	}
}

// end ends everything, and returns when that is so.
func (k *caches) end() {
	k.endSender()
	k.stop()
	k.informers.Wait()
}

// lost is the recorder of a cluster that has gone.
type lost struct{}

// Eventf implements events.Recorder.
func (lost) Eventf(runtime.Object, string, string, string, ...any) {}
