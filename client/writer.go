package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/client/internal/live"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/internal/ownwrites"
)

// Create implements [Client].
func (c *Cluster) Create(ctx context.Context, obj Object, opts ...WriteOption) error {
	o := applied(opts, WriteOption.ApplyToWrite)
	return c.put(ctx, order{verb: "POST", obj: obj, sent: obj, answerTo: obj}, o)
}

// Update implements [Client].
func (c *Cluster) Update(ctx context.Context, obj Object, opts ...WriteOption) error {
	o := applied(opts, WriteOption.ApplyToWrite)
	return c.put(ctx, order{verb: "PUT", obj: obj, sent: obj, answerTo: obj}, o)
}

// Patch implements [Client].
func (c *Cluster) Patch(ctx context.Context, obj Object, patch Patch, opts ...WriteOption) error {
	o := applied(opts, WriteOption.ApplyToWrite)
	return c.put(ctx, order{verb: "PATCH", obj: obj, patch: patch, answerTo: obj}, o)
}

// order is a write of one object, as it is asked for.
type order struct {
	verb string
	// obj says which object is meant.
	obj         Object
	subresource string
	// sent is the body; nil for a patch.
	sent Object
	// patch leads to answerTo; nil for a body.
	patch Patch
	// answerTo gets what the server answers.
	answerTo Object
}

// creates reports whether the order creates obj.
func (ord order) creates() bool { return ord.verb == "POST" && ord.subresource == "" }

// check refuses what would be sent to another place than meant, or would leave less than there was.
func (ord order) check(k kinds.Kind) error {
	if ord.verb == "PATCH" && misuse.IsNil(ord.patch) {
		return fmt.Errorf("patch %s %s: the patch is nil: client.MergeFrom returns one", k.GVK.Kind,
			ObjectKeyFromObject(ord.obj))
	}
	if !ord.creates() && ord.obj.GetName() == "" {
		return fmt.Errorf("write %s: %w", k.GVK.Kind, errNoName)
	}
	if _, bare := ord.sent.(*metav1.PartialObjectMetadata); bare {
		return fmt.Errorf("write %s %s: bare metadata cannot be written; use a patch", k.GVK.Kind,
			ObjectKeyFromObject(ord.obj))
	}
	return nil
}

// errNoName: the address of an object without a name is that of the collection, which a DELETE empties.
var errNoName = errors.New("the object has no name")

// put sends an order.
func (c *Cluster) put(ctx context.Context, ord order, o WriteOptions) error {
	k, err := kinds.Of(c.server.Scheme, ord.obj)
	if err != nil {
		return fmt.Errorf("write %T: %w", ord.obj, err)
	}
	if err := ord.check(k); err != nil {
		return err
	}
	p, err := c.server.PlaceOf(ctx, k.GVK, ObjectKeyFromObject(ord.obj), ord.subresource)
	if err != nil {
		return err
	}
	if ord.creates() {
		p.Name = "" // The body has it.
	}
	body, media, err := ord.body(c.server, k)
	if err != nil {
		return fmt.Errorf("write %s %s: %w", k.GVK.Kind, ObjectKeyFromObject(ord.obj), err)
	}
	reply, err := c.server.ReplyTo(ord.answerTo)
	if err != nil {
		return fmt.Errorf("write %s %s: %w", k.GVK.Kind, ObjectKeyFromObject(ord.obj), err)
	}
	ctx = ownwrites.WithIntent(ctx, &ownwrites.Intent{Name: ord.obj.GetName(), Decode: reply.Read})
	contentType, data, err := c.send(ctx, live.Request{
		Verb: ord.verb, Place: p, Params: c.params(o), Accept: c.server.Accept(ord.answerTo), ContentType: media,
		Body: body,
	})
	if err != nil {
		return err
	}
	return reply.Give(contentType, data)
}

// params says to the server how to write.
func (c *Cluster) params(o WriteOptions) url.Values {
	o.FieldManager = cmp.Or(o.FieldManager, c.o.FieldManager)
	o.DryRun = o.DryRun || c.o.DryRun
	return o.params()
}

// body encodes what is sent, and says how.
func (ord order) body(server *live.Server, k kinds.Kind) (body []byte, media string, err error) {
	if ord.patch != nil {
		body, err = ord.patch.Data(ord.answerTo)
		return body, string(ord.patch.Type()), err
	}
	if ord.sent != ord.obj { // A subresource's own object.
		if k, err = kinds.Of(server.Scheme, ord.sent); err != nil {
			return nil, "", err
		}
	}
	return server.Encode(ord.sent, k)
}

// Apply implements [Client].
func (c *Cluster) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...WriteOption) error {
	return c.apply(ctx, obj, "", opts)
}

func (c *Cluster) apply(ctx context.Context, obj runtime.ApplyConfiguration, subresource string,
	opts []WriteOption,
) error {
	o := applied(opts, WriteOption.ApplyToWrite)
	if misuse.IsNil(obj) {
		return errors.New(
			"apply: the apply configuration is nil: make one with k8s.io/client-go/applyconfigurations, or " +
				"ApplyUnstructured",
		)
	}
	body, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	var head metav1.PartialObjectMetadata
	if err := kinds.DecodeJSON(body, &head); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	if head.Name == "" {
		return fmt.Errorf("apply %s: %w", head.Kind, errNoName)
	}
	p, err := c.server.PlaceOf(ctx, head.GroupVersionKind(), ObjectKeyFromObject(&head), subresource)
	if err != nil {
		return err
	}
	_, data, err := c.send(ctx, live.Request{
		Verb: "PATCH", Place: p, Params: c.params(o), ContentType: string(types.ApplyPatchType), Body: body,
	})
	if err != nil {
		return err
	}
	return live.GiveApplied(data, obj)
}

// Delete implements [Client].
func (c *Cluster) Delete(ctx context.Context, obj Object, opts ...DeleteOption) error {
	o := applied(opts, DeleteOption.ApplyToDelete)
	o.DryRun = o.DryRun || c.o.DryRun
	k, err := kinds.Of(c.server.Scheme, obj)
	if err != nil {
		return fmt.Errorf("delete %T: %w", obj, err)
	}
	if obj.GetName() == "" {
		return fmt.Errorf("delete %s: %w", k.GVK.Kind, errNoName)
	}
	p, err := c.server.PlaceOf(ctx, k.GVK, ObjectKeyFromObject(obj), "")
	if err != nil {
		return err
	}
	intent := &ownwrites.Intent{
		Deleted: ownwrites.Identity{UID: obj.GetUID(), Version: obj.GetResourceVersion()},
	}
	if o.Preconditions != nil && o.Preconditions.UID != nil {
		intent.Precondition = *o.Preconditions.UID
	}
	_, _, err = c.send(ownwrites.WithIntent(ctx, intent), live.Request{
		Verb: "DELETE", Place: p, Params: o.params(), ContentType: kinds.JSON, Body: o.body(),
	})
	return err
}

// DeleteAllOf implements [Client].
func (c *Cluster) DeleteAllOf(ctx context.Context, obj Object, opts ...DeleteAllOfOption) error {
	o := applied(opts, DeleteAllOfOption.ApplyToDeleteAllOf)
	o.DryRun = o.DryRun || c.o.DryRun
	k, err := kinds.Of(c.server.Scheme, obj)
	if err != nil {
		return fmt.Errorf("delete all of %T: %w", obj, err)
	}
	r, err := c.server.Mapper.Of(ctx, k.GVK)
	if err != nil {
		return err
	}
	params := o.ListOptions.params()
	maps.Copy(params, o.DeleteOptions.params())
	_, _, err = c.send(ctx, live.Request{
		Verb: "DELETE", Place: live.Place{Resource: r, Namespace: o.Namespace}, Params: params, ContentType: kinds.JSON,
		Body: o.body(),
	})
	return err
}

// send sends a write. The record of own writes sees it in the transport; an intent in ctx is what the request does not
// say.
func (c *Cluster) send(ctx context.Context, r live.Request) (contentType string, body []byte, err error) {
	if err := ctx.Err(); err != nil {
		return "", nil, context.Cause(ctx)
	}
	return c.server.Send(ctx, r)
}
