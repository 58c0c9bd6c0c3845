package differential

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// watched are the resources whose every state is recorded.
var watched = []schema.GroupVersionResource{
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "replicasets"},
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "endpoints"},
	{Version: "v1", Resource: "configmaps"},
	{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
	events,
}

var events = schema.GroupVersionResource{Version: "v1", Resource: "events"}

// change is one state of an object, as a watch showed it.
type change struct {
	object *unstructured.Unstructured
	gone   bool
}

// recorder watches all that is recorded. It is the only eye of a side: steps read from it, not from the server, so
// that what they decide by is what was recorded.
type recorder struct {
	client dynamic.Interface

	mu sync.Mutex
	// objects are what exists now, by namespace and then UID.
	objects map[string]map[string]*unstructured.Unstructured
	// log is what happened in each namespace since it was last taken, without events.
	log map[string][]change
	// count is how many changes there were outside the probe's namespace, events aside; last is the latest.
	count int
	last  string
	// probed are the names of ConfigMaps that were deleted in the probe's namespace.
	probed map[string]bool
	// eventAt is when the last event object was written.
	eventAt time.Time
	// setAt is when a ReplicaSet was last created.
	setAt time.Time
	// waiting are closed and dropped with each change.
	waiting chan struct{}
}

func newRecorder(client dynamic.Interface) *recorder {
	return &recorder{
		client:  client,
		objects: map[string]map[string]*unstructured.Unstructured{}, log: map[string][]change{},
		probed: map[string]bool{}, waiting: make(chan struct{}),
	}
}

// run watches until ctx is done.
func (r *recorder) run(ctx context.Context) error {
	var wg sync.WaitGroup
	errs := make([]error, len(watched))
	for i, resource := range watched {
		wg.Go(func() { errs[i] = r.follow(ctx, resource) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// follow watches one resource from its beginning.
func (r *recorder) follow(ctx context.Context, resource schema.GroupVersionResource) error {
	version := "0"
	for ctx.Err() == nil {
		w, err := r.client.Resource(resource).Watch(ctx,
			metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
		if err != nil {
			if ctx.Err() != nil || apierrors.IsForbidden(err) {
				return ctx.Err()
			}
			time.Sleep(100 * time.Millisecond)
			continue
		}
		for e := range w.ResultChan() {
			o, ok := e.Object.(*unstructured.Unstructured)
			if ctx.Err() != nil {
				break
			}
			if !ok || e.Type == watch.Error {
				w.Stop()
				return fmt.Errorf("watch %s from %s: %v", resource.Resource, version, e.Object)
			}
			version = o.GetResourceVersion()
			if e.Type != watch.Bookmark {
				r.record(resource, change{object: o, gone: e.Type == watch.Deleted})
			}
		}
		w.Stop()
	}
	return nil
}

func (r *recorder) record(resource schema.GroupVersionResource, c change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ns, uid := c.object.GetNamespace(), string(c.object.GetUID())
	if r.objects[ns] == nil {
		r.objects[ns] = map[string]*unstructured.Unstructured{}
	}
	if c.object.GetKind() == "ReplicaSet" && r.objects[ns][uid] == nil {
		r.setAt = time.Now()
	}
	if c.gone {
		delete(r.objects[ns], uid)
	} else {
		r.objects[ns][uid] = c.object
	}
	close(r.waiting)
	r.waiting = make(chan struct{})
	if resource == events {
		if ns != probeNamespace {
			r.eventAt = time.Now()
		}
		return
	}
	if ns == probeNamespace && c.gone && c.object.GetKind() == "ConfigMap" {
		r.probed[c.object.GetName()] = true
	}
	if ns != probeNamespace {
		r.log[ns] = append(r.log[ns], c)
		r.count++
		r.last = fmt.Sprintf("%s %s/%s", resource.Resource, ns, c.object.GetName())
	}
}

// changes counts the changes so far, but for events and the probe's.
func (r *recorder) changes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

func (r *recorder) lastChange() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// collected reports whether the probe's ConfigMap of that name was seen to go.
func (r *recorder) collected(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.probed[name]
}

// nextSecond waits until a ReplicaSet created now would be younger than all that are there, by its creation time. It
// counts seconds; among those of one second the name decides what is older, and no two runs would be alike.
func (r *recorder) nextSecond() {
	r.mu.Lock()
	last := r.setAt
	r.mu.Unlock()
	time.Sleep(time.Until(last.Add(1100 * time.Millisecond)))
}

// list returns the objects of a namespace and kind. They must not be changed.
func (r *recorder) list(ns, kind string) []*unstructured.Unstructured {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*unstructured.Unstructured
	for _, o := range r.objects[ns] {
		if o.GetKind() == kind {
			found = append(found, o)
		}
	}
	return found
}

// find returns one object by name, or nil.
func (r *recorder) find(ns, kind, name string) *unstructured.Unstructured {
	for _, o := range r.list(ns, kind) {
		if o.GetName() == name {
			return o
		}
	}
	return nil
}

// take returns what happened in a namespace since it was last asked.
func (r *recorder) take(ns string) []change {
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.log[ns]
	delete(r.log, ns)
	return log
}

// until waits for a change after which ask returns "", and for no longer than settleWithin.
func (r *recorder) until(ctx context.Context, ask func() (missing string)) error {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	for {
		r.mu.Lock()
		next := r.waiting
		r.mu.Unlock()
		missing := ask()
		if missing == "" {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", missing, ctx.Err())
		}
	}
}

// eventsQuiet waits until no event was written for three seconds: their senders have nothing left.
func (r *recorder) eventsQuiet(ctx context.Context) error {
	start := time.Now()
	for {
		r.mu.Lock()
		last := r.eventAt
		r.mu.Unlock()
		if last.Before(start) {
			last = start
		}
		left := 3*time.Second - time.Since(last)
		if left <= 0 {
			return nil
		}
		select {
		case <-time.After(left):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
