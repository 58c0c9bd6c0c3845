package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/client/internal/live"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/writes"
)

// Create implements [Client].
func (c *Cluster) Create(ctx context.Context, obj Object, opts ...WriteOption) error {
	o := applied(opts, WriteOption.ApplyToWrite)
	return c.write(ctx, write{verb: http.MethodPost, obj: obj, body: obj}, o)
}

// Update implements [Client].
func (c *Cluster) Update(ctx context.Context, obj Object, opts ...WriteOption) error {
	o := applied(opts, WriteOption.ApplyToWrite)
	return c.write(ctx, write{verb: http.MethodPut, obj: obj, body: obj}, o)
}

// Patch implements [Client].
func (c *Cluster) Patch(ctx context.Context, obj Object, patch Patch, opts ...WriteOption) error {
	o := applied(opts, WriteOption.ApplyToWrite)
	return c.write(ctx, write{verb: http.MethodPatch, obj: obj, body: obj, patch: patch}, o)
}

// write is a create, an update or a patch of one object.
type write struct {
	verb string
	// obj names the object.
	obj         Object
	subresource string
	// body is sent, unless there is a patch. The server's answer replaces it. It is obj, or an object of the
	// subresource's own kind.
	body Object
	// patch is the change to send, of which body is the result. It is for the verb PATCH only.
	patch Patch
}

// write encodes and sends w. The server's answer replaces the body.
func (c *Cluster) write(ctx context.Context, w write, o WriteOptions) error {
	k, err := kinds.Of(c.o.Scheme, w.obj)
	if err != nil {
		return fmt.Errorf("write %T: %w", w.obj, err)
	}
	if err := w.check(k); err != nil {
		return err
	}
	key, bodyKind := ObjectKeyFromObject(w.obj), k
	if w.body != w.obj {
		if bodyKind, err = kinds.Of(c.o.Scheme, w.body); err != nil {
			return fmt.Errorf("write %s %s: %w", k.GVK.Kind, key, err)
		}
	}
	r := live.Request{Verb: w.verb, GVK: k.GVK, Key: key, Subresource: w.subresource, Params: c.params(o)}
	if w.verb == http.MethodPatch {
		r.ContentType = string(w.patch.Type())
		r.Body, err = w.patch.Data(w.body)
	} else {
		r.Body, r.ContentType, err = kinds.Encode(w.body, bodyKind.GVK, c.server.Protobuf)
	}
	if err != nil {
		return fmt.Errorf("write %s %s: %w", k.GVK.Kind, key, err)
	}
	return c.server.Exchange(ctx, r, bodyKind, w.body)
}

// check refuses a write without a name, which would go to the path of the collection, and a write of metadata, which
// would remove the rest of the object.
func (w write) check(k kinds.Kind) error {
	if w.verb == http.MethodPatch && misuse.IsNil(w.patch) {
		return fmt.Errorf("patch %s %s: the patch is nil: client.MergeFrom returns one", k.GVK.Kind,
			ObjectKeyFromObject(w.obj))
	}
	if creates := w.verb == http.MethodPost && w.subresource == ""; !creates && w.obj.GetName() == "" {
		return fmt.Errorf("write %s: %w", k.GVK.Kind, errNoName)
	}
	if _, bare := w.body.(*metav1.PartialObjectMetadata); bare && w.verb != http.MethodPatch {
		return fmt.Errorf("write %s %s: bare metadata cannot be written; use a patch", k.GVK.Kind,
			ObjectKeyFromObject(w.obj))
	}
	return nil
}

// errNoName is the error of a write without a name. Without a name, the path would be that of the collection, and a
// DELETE would delete everything in it.
var errNoName = errors.New("the object has no name")

// params returns the query parameters of a write.
func (c *Cluster) params(o WriteOptions) url.Values {
	o.FieldManager = cmp.Or(o.FieldManager, c.o.FieldManager)
	o.DryRun = o.DryRun || c.o.DryRun
	return o.params()
}

// Apply implements [Client].
func (c *Cluster) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...WriteOption) error {
	return c.apply(ctx, obj, "", opts)
}

// apply applies obj to a subresource, or to the object itself if subresource is empty.
func (c *Cluster) apply(ctx context.Context, obj runtime.ApplyConfiguration, subresource string,
	opts []WriteOption,
) error {
	o := applied(opts, WriteOption.ApplyToWrite)
	if misuse.IsNil(obj) {
		return errors.New(
			"apply: the apply configuration is nil: make one with k8s.io/client-go/applyconfigurations, or " +
				"ApplyConfigurationFromUnstructured",
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
	_, answer, err := c.server.Send(ctx, live.Request{
		Verb: http.MethodPatch, GVK: head.GroupVersionKind(), Key: ObjectKeyFromObject(&head), Subresource: subresource,
		Params: c.params(o), ContentType: string(types.ApplyPatchType), Body: body,
	})
	if err != nil {
		return err
	}
	if u, is := obj.(json.Unmarshaler); is { // Unstructured: this replaces the content of the caller's object.
		return kinds.DecodeJSON(answer, u)
	}
	fresh := reflect.New(reflect.TypeOf(obj).Elem()) // Fields that the answer lacks must not stay.
	if err := kinds.DecodeJSON(answer, fresh.Interface()); err != nil {
		return err
	}
	reflect.ValueOf(obj).Elem().Set(fresh.Elem())
	return nil
}

// Delete implements [Client].
func (c *Cluster) Delete(ctx context.Context, obj Object, opts ...DeleteOption) error {
	o := applied(opts, DeleteOption.ApplyToDelete)
	o.DryRun = o.DryRun || c.o.DryRun
	k, err := kinds.Of(c.o.Scheme, obj)
	if err != nil {
		return fmt.Errorf("delete %T: %w", obj, err)
	}
	if obj.GetName() == "" {
		return fmt.Errorf("delete %s: %w", k.GVK.Kind, errNoName)
	}
	// The record needs to know which object the caller means, because the answer to a deletion may not show it.
	intent := &writes.Intent{Deleted: obj}
	if o.Preconditions != nil && o.Preconditions.UID != nil {
		intent.Precondition = *o.Preconditions.UID
	}
	_, answer, err := c.server.Send(writes.WithIntent(ctx, intent), live.Request{
		Verb: http.MethodDelete, GVK: k.GVK, Key: ObjectKeyFromObject(obj), Params: o.params(), ContentType: kinds.JSON,
		Body: o.body(),
	})
	if err != nil {
		return err
	}
	return kinds.DecodeJSON(answer, &metav1.TypeMeta{}) // A proxy that answers with a page has deleted nothing.
}

// DeleteAllOf implements [Client].
func (c *Cluster) DeleteAllOf(ctx context.Context, obj Object, opts ...DeleteAllOfOption) error {
	o := applied(opts, DeleteAllOfOption.ApplyToDeleteAllOf)
	o.DryRun = o.DryRun || c.o.DryRun
	k, err := kinds.Of(c.o.Scheme, obj)
	if err != nil {
		return fmt.Errorf("delete all of %T: %w", obj, err)
	}
	params := o.ListOptions.params()
	maps.Copy(params, o.DeleteOptions.params())
	_, _, err = c.server.Send(ctx, live.Request{
		Verb: http.MethodDelete, GVK: k.GVK, Key: ObjectKey{Namespace: o.Namespace}, Params: params,
		ContentType: kinds.JSON, Body: o.body(),
	})
	return err
}
