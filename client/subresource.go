package client

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/client/internal/live"
	"github.com/flyball-dev/flyball/internal/misuse"
)

// Status implements [Client].
func (c *Cluster) Status() SubResourceClient { return c.SubResource("status") }

// SubResource implements [Client].
func (c *Cluster) SubResource(name string) SubResourceClient {
	if name == "" {
		// The path without a subresource is the object's own.
		panic(`client: SubResource: the name is empty; give one like "status" or "scale"`)
	}
	return &subresource{c, name}
}

// subresource is the client of the subresource with that name.
type subresource struct {
	cluster *Cluster
	name    string
}

// Get implements [SubResourceClient].
func (s *subresource) Get(ctx context.Context, obj, sub Object) error {
	c := s.cluster
	k, err := kinds.Of(c.o.Scheme, obj)
	if err != nil {
		return fmt.Errorf("get %s of %T: %w", s.name, obj, err)
	}
	bodyKind, err := kinds.Of(c.o.Scheme, sub)
	if err != nil {
		return fmt.Errorf("get %s of %T: %w", s.name, obj, err)
	}
	return c.server.Exchange(ctx, live.Request{
		Verb: http.MethodGet, GVK: k.GVK, Key: ObjectKeyFromObject(obj), Subresource: s.name,
	}, bodyKind, sub)
}

// Create implements [SubResourceClient].
func (s *subresource) Create(ctx context.Context, obj, sub Object, opts ...WriteOption) error {
	o := applied(opts, WriteOption.ApplyToWrite)
	if misuse.IsNil(sub) {
		return fmt.Errorf("create %s of %s: %w", s.name, ObjectKeyFromObject(obj), kinds.ErrNoObject)
	}
	setName(sub, obj)
	return s.cluster.write(ctx, write{verb: http.MethodPost, obj: obj, subresource: s.name, body: sub}, o)
}

// Update implements [SubResourceClient].
func (s *subresource) Update(ctx context.Context, obj Object, opts ...WriteOption) error {
	o := applied(opts, WriteOption.ApplyToWrite)
	w := write{verb: http.MethodPut, obj: obj, subresource: s.name, body: obj}
	if o.Body != nil {
		setName(o.Body, obj)
		w.body = o.Body
	}
	return s.cluster.write(ctx, w, o)
}

// setName gives the body of a subresource the name and the namespace of its object, where it has none. The server
// compares them with the path.
func setName(body, obj Object) {
	if misuse.IsNil(obj) {
		return // The write refuses it.
	}
	if body.GetName() == "" {
		body.SetName(obj.GetName())
	}
	if body.GetNamespace() == "" {
		body.SetNamespace(obj.GetNamespace())
	}
}

// Patch implements [SubResourceClient].
func (s *subresource) Patch(ctx context.Context, obj Object, patch Patch, opts ...WriteOption) error {
	o := applied(opts, WriteOption.ApplyToWrite)
	w := write{verb: http.MethodPatch, obj: obj, subresource: s.name, body: obj, patch: patch}
	if o.Body != nil {
		w.body = o.Body
	}
	return s.cluster.write(ctx, w, o)
}

// Apply implements [SubResourceClient].
func (s *subresource) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...WriteOption) error {
	return s.cluster.apply(ctx, obj, s.name, opts)
}
