package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/internal/ownwrites"
)

// Create implements [Writer].
func (c *Cluster) Create(ctx context.Context, obj Object, opts ...CreateOption) error {
	var o WriteOptions
	for _, opt := range given(opts) {
		opt.ApplyToCreate(&o)
	}
	return c.put(ctx, order{verb: "POST", obj: obj, sent: obj, answerTo: obj}, o)
}

// Update implements [Writer].
func (c *Cluster) Update(ctx context.Context, obj Object, opts ...UpdateOption) error {
	var o WriteOptions
	for _, opt := range given(opts) {
		opt.ApplyToUpdate(&o)
	}
	return c.put(ctx, order{verb: "PUT", obj: obj, sent: obj, answerTo: obj}, o)
}

// Patch implements [Writer].
func (c *Cluster) Patch(ctx context.Context, obj Object, patch Patch, opts ...PatchOption) error {
	var o WriteOptions
	for _, opt := range given(opts) {
		opt.ApplyToPatch(&o)
	}
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

// check refuses what would be sent to another place than meant, or would leave less than there was.
func (ord order) check(k kind) error {
	if ord.verb == "PATCH" && misuse.IsNil(ord.patch) {
		return fmt.Errorf("patch %s %s: the patch is nil: client.MergeFrom makes one", k.gvk.Kind,
			ObjectKeyFromObject(ord.obj))
	}
	creates := ord.verb == "POST" && ord.subresource == ""
	if !creates && ord.obj.GetName() == "" {
		return fmt.Errorf("write %s: %w", k.gvk.Kind, errNoName)
	}
	if _, bare := ord.sent.(*metav1.PartialObjectMetadata); bare {
		return fmt.Errorf("write %s %s: metadata are not the whole object; patch it", k.gvk.Kind,
			ObjectKeyFromObject(ord.obj))
	}
	return nil
}

// errNoName: the address of an object without a name is that of the collection, which a DELETE empties.
var errNoName = errors.New("the object has no name")

// put sends an order.
func (c *Cluster) put(ctx context.Context, ord order, o WriteOptions) error {
	k, err := kindOf(c.o.Scheme, ord.obj)
	if err != nil {
		return fmt.Errorf("write %T: %w", ord.obj, err)
	}
	if err := ord.check(k); err != nil {
		return err
	}
	p, err := c.live.placeOf(ctx, k.gvk, ObjectKeyFromObject(ord.obj), ord.subresource)
	if err != nil {
		return err
	}
	if ord.verb == "POST" && ord.subresource == "" {
		p.name = "" // The body has it.
	}
	body, media, err := ord.body(c.live, k)
	if err != nil {
		return fmt.Errorf("write %s %s: %w", k.gvk.Kind, ObjectKeyFromObject(ord.obj), err)
	}
	if o.FieldManager == "" {
		o.FieldManager = c.o.FieldManager
	}
	got := &reply{scheme: c.o.Scheme, obj: ord.answerTo}
	request := c.live.request(ord.verb, p).SetHeader("Content-Type", media).SetHeader("Accept",
		c.live.accept(ord.answerTo)).Body(body)
	contentType, data, err := c.send(ctx, request, o.params(), &ownwrites.Intent{
		Name: ord.obj.GetName(), Owner: ownwrites.OwnerOf(ctx, ord.obj), Decode: got.read,
	})
	if err != nil {
		return err
	}
	return got.give(contentType, data)
}

// body encodes what is sent, and says how.
func (ord order) body(l *live, k kind) (body []byte, media string, err error) {
	if ord.patch != nil {
		body, err = ord.patch.Data(ord.answerTo)
		return body, string(ord.patch.Type()), err
	}
	if ord.sent != ord.obj { // A subresource's own object.
		if k, err = kindOf(l.scheme, ord.sent); err != nil {
			return nil, "", err
		}
	}
	return encode(ord.sent, k.gvk, l.protobuf)
}

// Apply implements [Writer].
func (c *Cluster) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...ApplyOption) error {
	return c.apply(ctx, obj, "", opts)
}

func (c *Cluster) apply(ctx context.Context, obj runtime.ApplyConfiguration, subresource string,
	opts []ApplyOption,
) error {
	var o WriteOptions
	for _, opt := range given(opts) {
		opt.ApplyToApply(&o)
	}
	if o.FieldManager == "" {
		o.FieldManager = c.o.FieldManager
	}
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
	if err := decode(body, &head); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	if head.Name == "" {
		return fmt.Errorf("apply %s: %w", head.Kind, errNoName)
	}
	p, err := c.live.placeOf(ctx, head.GroupVersionKind(), ObjectKeyFromObject(&head), subresource)
	if err != nil {
		return err
	}
	request := c.live.request("PATCH", p).SetHeader("Content-Type", string(types.ApplyPatchType)).Body(body)
	_, data, err := c.send(ctx, request, o.params(), &ownwrites.Intent{Owner: ownwrites.OwnerOf(ctx, &head)})
	if err != nil {
		return err
	}
	if u, is := obj.(json.Unmarshaler); is { // Unstructured: the caller's own object is changed.
		return decode(data, u)
	}
	fresh := reflect.New(reflect.TypeOf(obj).Elem())
	if err := decode(data, fresh.Interface()); err != nil {
		return err
	}
	reflect.ValueOf(obj).Elem().Set(fresh.Elem())
	return nil
}

// Delete implements [Writer].
func (c *Cluster) Delete(ctx context.Context, obj Object, opts ...DeleteOption) error {
	var o DeleteOptions
	for _, opt := range given(opts) {
		opt.ApplyToDelete(&o)
	}
	k, err := kindOf(c.o.Scheme, obj)
	if err != nil {
		return fmt.Errorf("delete %T: %w", obj, err)
	}
	if obj.GetName() == "" {
		return fmt.Errorf("delete %s: %w", k.gvk.Kind, errNoName)
	}
	p, err := c.live.placeOf(ctx, k.gvk, ObjectKeyFromObject(obj), "")
	if err != nil {
		return err
	}
	body, err := o.body()
	if err != nil {
		return err
	}
	intent := &ownwrites.Intent{
		Owner:   ownwrites.OwnerOf(ctx, obj),
		Deleted: ownwrites.Identity{UID: obj.GetUID(), Version: obj.GetResourceVersion()},
	}
	if o.Preconditions != nil && o.Preconditions.UID != nil {
		intent.Precondition = *o.Preconditions.UID
	}
	request := c.live.request("DELETE", p).SetHeader("Content-Type", jsonMedia).Body(body)
	_, _, err = c.send(ctx, request, o.params(), intent)
	return err
}

// DeleteAllOf implements [Writer].
func (c *Cluster) DeleteAllOf(ctx context.Context, obj Object, opts ...DeleteAllOfOption) error {
	var o DeleteAllOfOptions
	for _, opt := range given(opts) {
		opt.ApplyToDeleteAllOf(&o)
	}
	k, err := kindOf(c.o.Scheme, obj)
	if err != nil {
		return fmt.Errorf("delete all of %T: %w", obj, err)
	}
	r, err := c.live.mapper.resourceOf(ctx, k.gvk)
	if err != nil {
		return err
	}
	p := place{resource: r, namespace: o.Namespace}
	body, err := o.body()
	if err != nil {
		return err
	}
	request := c.live.collection("DELETE", p, o.ListOptions).SetHeader("Content-Type", jsonMedia).Body(body)
	_, _, err = c.send(ctx, request, o.params(), &ownwrites.Intent{Owner: OwnerFrom(ctx)})
	return err
}

// send sends a write. The record of own writes sees it in the transport; intent is what the request does not say.
func (c *Cluster) send(ctx context.Context, r *rest.Request, params url.Values,
	intent *ownwrites.Intent,
) (string, []byte, error) {
	if err := r.Error(); err != nil {
		return "", nil, err
	}
	if err := ctx.Err(); err != nil {
		return "", nil, context.Cause(ctx)
	}
	return answer(ownwrites.WithIntent(ctx, intent), r, params)
}
