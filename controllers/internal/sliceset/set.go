package sliceset

import (
	"context"
	"errors"
	"fmt"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/controllers/internal/serving"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/workqueue"
)

// Set is all EndpointSlices of one controller. A slice is marked by its labels: [discoveryv1.LabelManagedBy] names the
// controller, and [discoveryv1.LabelServiceName] the key that the slice belongs to.
//
// Concurrency: safe for concurrent use, one sync of a key at a time.
type Set struct {
	// Gate postpones the sync of a key until the cache shows the slices that were written for it.
	*serving.Gate
	client    *client.Cluster
	informer  informer.Informer[*discoveryv1.EndpointSlice]
	managedBy string
	of        string
	left      generations
}

// New returns the slices with that value of [discoveryv1.LabelManagedBy]. It adds an index to the informer of
// EndpointSlices. of is the kind of object that a key names; errors mention it.
func New(c *client.Cluster, informers *informer.Factory, managedBy, of string) (*Set, error) {
	i, err := informer.For[*discoveryv1.EndpointSlice](informers)
	if err != nil {
		return nil, err
	}
	s := &Set{Gate: serving.NewGate(c), client: c, informer: i, managedBy: managedBy, of: of}
	if err := i.AddIndex(managedBy, s.index); err != nil && !errors.Is(err, informer.ErrIndexExists) {
		return nil, fmt.Errorf("index EndpointSlices by %s: %w", of, err)
	}
	client.TrackInformer(c, discoveryv1.Resource("endpointslices"), i)
	return s, nil
}

// index finds the slices of a key. The name of the index is the value of the label.
func (s *Set) index(slice *discoveryv1.EndpointSlice) ([]string, error) {
	if !s.managed(slice) {
		return nil, nil
	}
	return []string{keyOf(slice).String()}, nil
}

// managed reports whether the slice is marked as this controller's.
func (s *Set) managed(slice *discoveryv1.EndpointSlice) bool {
	return slice.Labels[discoveryv1.LabelManagedBy] == s.managedBy
}

// keyOf returns the key that the slice's label names. Its name is empty if there is no label.
func keyOf(slice *discoveryv1.EndpointSlice) types.NamespacedName {
	return types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
}

// Informer returns the informer of all EndpointSlices.
func (s *Set) Informer() informer.Informer[*discoveryv1.EndpointSlice] { return s.informer }

// Of returns the slices of a key that are not being deleted. They are shared with the cache: read only.
func (s *Set) Of(key types.NamespacedName) ([]*discoveryv1.EndpointSlice, error) {
	held, err := s.informer.ByIndex(s.managedBy, key.String())
	if err != nil {
		return nil, fmt.Errorf("find endpoint slices: %w", err)
	}
	s.left.keep(key, held)
	var live []*discoveryv1.EndpointSlice
	for _, slice := range held {
		if slice.DeletionTimestamp == nil {
			live = append(live, slice)
		}
	}
	return live, nil
}

// Forget removes what is recorded of a key whose object is gone.
func (s *Set) Forget(key types.NamespacedName) { s.left.forget(key) }

// Events queues the key of a slice that somebody else has created, changed or deleted, after a delay that gathers
// several changes. The controller's own writes cause events, too; generations tells them apart. Slices that exist at
// the start queue their keys without delay, together with the objects that the keys name: a slice whose object is gone
// is noticed, too.
//
// A sync that waits for the cache to show the controller's last writes is queued at once.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslice/endpointslice_controller.go, onEndpointSliceAdd,
// onEndpointSliceUpdate and onEndpointSliceDelete; endpointslicemirroring/endpointslicemirroring_controller.go has the
// same
func (s *Set) Events(delay time.Duration) handler.EventHandler[*discoveryv1.EndpointSlice, reconcile.Request] {
	later := func(slice *discoveryv1.EndpointSlice, q reconcile.Enqueuer[reconcile.Request]) {
		if key := keyOf(slice); key.Name != "" {
			q.AddAfter(reconcile.Request{NamespacedName: key}, delay)
		}
	}
	return handler.EventHandler[*discoveryv1.EndpointSlice, reconcile.Request]{
		OnAdd: func(_ context.Context, slice *discoveryv1.EndpointSlice, initial bool,
			q reconcile.Enqueuer[reconcile.Request],
		) {
			if !s.managed(slice) {
				return
			}
			s.Wake(keyOf(slice), q)
			switch {
			case s.left.ours(keyOf(slice), slice):
			case initial && keyOf(slice).Name != "":
				q.Add(reconcile.Request{NamespacedName: keyOf(slice)})
			default:
				later(slice, q)
			}
		},
		OnUpdate: func(_ context.Context, old, slice *discoveryv1.EndpointSlice,
			q reconcile.Enqueuer[reconcile.Request],
		) {
			if !s.managed(slice) && !s.managed(old) {
				return
			}
			s.Wake(keyOf(slice), q)
			moved := keyOf(old) != keyOf(slice)
			if moved {
				later(old, q)
			}
			if moved || s.managed(old) != s.managed(slice) || s.changedByOthers(old, slice) {
				later(slice, q)
			}
		},
		OnDelete: func(_ context.Context, gone informer.Deleted[*discoveryv1.EndpointSlice],
			q reconcile.Enqueuer[reconcile.Request],
		) {
			slice := gone.Object
			if !s.managed(slice) {
				return
			}
			expected := s.left.gone(keyOf(slice), slice.UID)
			s.Wake(keyOf(slice), q)
			if !expected {
				later(slice, q)
			}
		},
	}
}

// changedByOthers reports whether somebody else has changed what this controller writes, or has deleted a slice that a
// finalizer holds back. It ignores changes that do not raise the generation: they concern nothing that this controller
// writes.
func (s *Set) changedByOthers(old, slice *discoveryv1.EndpointSlice) bool {
	changed := old.Generation != slice.Generation || (old.DeletionTimestamp == nil) != (slice.DeletionTimestamp == nil)
	return changed && !s.left.ours(keyOf(slice), slice)
}

// Retries returns [workqueue.DefaultControllerRateLimiter] with longer delays, from a second to longest: a sync may
// need many writes.
func Retries(longest time.Duration) workqueue.RateLimiter[reconcile.Request] {
	return workqueue.NewMaxOfRateLimiter[reconcile.Request](
		workqueue.NewExponentialRateLimiter[reconcile.Request](
			workqueue.ExponentialOptions{Base: time.Second, Max: longest},
		),
		workqueue.NewBucketRateLimiter[reconcile.Request](10, 100),
	)
}
