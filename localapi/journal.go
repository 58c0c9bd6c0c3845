package localapi

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/internal/registry"
	"github.com/flyball-dev/flyball/localapi/storage"
)

// Change is one committed write.
type Change struct {
	Revision int64

	// Resource has the version that the objects are in. For a custom resource with several versions that is always the
	// same one, whichever the client used.
	Resource        schema.GroupVersionResource
	Kind            schema.GroupVersionKind
	Namespace, Name string

	// Object is the state after the write, or nil after a delete. Previous is the state before it, or nil before a
	// create. Both are read-only and lack their resource version.
	Object, Previous runtime.Object
}

// Journal reads the committed writes in order. One goroutine at a time may use it.
type Journal struct {
	server *Server
	watch  storage.Watch

	// resources caches which version a resource's objects are returned in.
	resources map[schema.GroupResource]*registry.Resource
}

// Journal returns a reader of the writes after a revision; 0 means all that the store remembers. [Journal.Close]
// releases it. Errors: the history since that revision is gone.
func (s *Server) Journal(after int64) (*Journal, error) {
	w, err := s.env.Store.Watch(context.Background(), storage.TenantPrefix(s.env.Tenant), after)
	if err != nil {
		return nil, fmt.Errorf("read the writes after %d: %w", after, err)
	}
	return &Journal{server: s, watch: w, resources: map[schema.GroupResource]*registry.Resource{}}, nil
}

// Next returns the writes since the last call, without waiting for any. Errors: the store is closed or has forgotten
// some of them; an object cannot be decoded.
func (j *Journal) Next() ([]Change, error) {
	events, _, err := j.watch.Poll()
	if err != nil {
		return nil, err
	}
	var changes []Change
	for i := range events {
		c, ok, err := j.change(&events[i])
		if err != nil {
			return nil, fmt.Errorf("write %d, to %s: %w", events[i].Revision, events[i].Key, err)
		}
		if ok {
			changes = append(changes, c)
		}
	}
	return changes, nil
}

// Close releases the journal.
func (j *Journal) Close() { j.watch.Close() }

// change decodes one write. It reports false for a write to a resource that is no longer served.
func (j *Journal) change(e *storage.Event) (c Change, ok bool, err error) {
	key, err := storage.ParseKey(e.Key)
	if err != nil {
		return Change{}, false, err
	}
	r := j.resource(schema.GroupResource{Group: key.Group, Resource: key.Resource})
	if r == nil {
		return Change{}, false, nil
	}
	c = Change{
		Revision: e.Revision, Resource: r.Definition.GroupVersionResource(), Kind: r.Definition.GroupVersionKind(),
		Namespace: key.Namespace, Name: key.Name,
	}
	if !e.Deleted {
		if c.Object, err = r.Restore(e.Record); err != nil {
			return Change{}, false, err
		}
	}
	if e.Previous.Revision != storage.NoRevision {
		if c.Previous, err = r.Restore(e.Previous); err != nil {
			return Change{}, false, err
		}
	}
	return c, true, nil
}

// resource returns one of the versions that a resource is served in, always the same one, or nil.
func (j *Journal) resource(gr schema.GroupResource) *registry.Resource {
	if r := j.resources[gr]; r != nil {
		return r
	}
	for gvr, r := range j.server.served.Load().resources {
		if known := j.resources[gr]; gvr.GroupResource() == gr &&
			(known == nil || gvr.Version < known.Definition.GroupVersionResource().Version) {
			j.resources[gr] = r
		}
	}
	return j.resources[gr]
}
