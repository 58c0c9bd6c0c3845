package client

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/internal/misuse"
)

// Status implements [Client].
func (c *Cluster) Status() SubResourceClient { return c.SubResource("status") }

// SubResource implements [Client].
func (c *Cluster) SubResource(name string) SubResourceClient {
	if name == "" {
		// It would write the object itself.
		panic(`client: SubResource: the name is empty; give one like "status" or "scale"`)
	}
	return &subresource{c, name}
}

// subresource is the client of one.
type subresource struct {
	cluster *Cluster
	name    string
}

// Get implements [SubResourceClient].
func (s *subresource) Get(ctx context.Context, obj, sub Object) error {
	return s.cluster.server.GetSubresource(ctx, obj, s.name, sub)
}

// Create implements [SubResourceClient].
func (s *subresource) Create(ctx context.Context, obj, sub Object, opts ...WriteOption) error {
	o := applied(opts, WriteOption.ApplyToWrite)
	if misuse.IsNil(sub) {
		return fmt.Errorf("create %s of %s: %w", s.name, ObjectKeyFromObject(obj), kinds.ErrNoObject)
	}
	name(sub, obj)
	return s.cluster.put(ctx, order{verb: "POST", obj: obj, subresource: s.name, sent: sub, answerTo: sub}, o)
}

// Update implements [SubResourceClient].
func (s *subresource) Update(ctx context.Context, obj Object, opts ...WriteOption) error {
	o := applied(opts, WriteOption.ApplyToWrite)
	ord := order{verb: "PUT", obj: obj, subresource: s.name, sent: obj, answerTo: obj}
	if o.Body != nil {
		name(o.Body, obj)
		ord.sent, ord.answerTo = o.Body, o.Body
	}
	return s.cluster.put(ctx, ord, o)
}

// name names the body of a subresource as its object, if it has no name: the server refuses one that is not in the
// right place.
func name(body, obj Object) {
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
	ord := order{verb: "PATCH", obj: obj, subresource: s.name, patch: patch, answerTo: obj}
	if o.Body != nil {
		ord.answerTo = o.Body
	}
	return s.cluster.put(ctx, ord, o)
}

// Apply implements [SubResourceClient].
func (s *subresource) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...WriteOption) error {
	return s.cluster.apply(ctx, obj, s.name, opts)
}
