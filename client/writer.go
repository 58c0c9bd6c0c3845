package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/misuse"
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
		return fmt.Errorf("patch %s %s: the patch is nil: client.MergeFrom makes one", k.gvk.Kind, ObjectKeyFromObject(ord.obj))
	}
	creates := ord.verb == "POST" && ord.subresource == ""
	if !creates && ord.obj.GetName() == "" {
		return fmt.Errorf("write %s: %w", k.gvk.Kind, errNoName)
	}
	if _, bare := ord.sent.(*metav1.PartialObjectMetadata); bare {
		return fmt.Errorf("write %s %s: metadata are not the whole object; patch it", k.gvk.Kind, ObjectKeyFromObject(ord.obj))
	}
	return nil
}

// errNoName: the address of an object without a name is that of the collection, which a DELETE empties.
var errNoName = errors.New("the object has no name")

// put sends an order and keeps the books.
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
	w := newWrite(ctx, p, k.gvk, ownerOf(ctx, ord.obj))
	if ord.verb == "POST" && ord.subresource == "" {
		p.name = "" // The body has it.
	}
	body, media, err := ord.body(c.o.Scheme, k)
	if err != nil {
		return fmt.Errorf("write %s %s: %w", k.gvk.Kind, w.key, err)
	}
	if ord.sent != nil && ord.subresource == "" {
		w.sent = ord.sent.DeepCopyObject().(Object) // The caller's changes while nobody knows the outcome.
	}
	if o.FieldManager == "" {
		o.FieldManager = c.o.FieldManager
	}
	if o.DryRun {
		w = nil
	}
	request := c.live.request(ord.verb, p).SetHeader("Content-Type", media).Body(body)
	return c.send(ctx, request, o.params(), w, func(data []byte) error { return c.live.receive(data, ord.answerTo) })
}

// body encodes what is sent, and says how.
func (ord order) body(scheme *runtime.Scheme, k kind) (body []byte, media string, err error) {
	if ord.patch != nil {
		body, err = ord.patch.Data(ord.answerTo)
		return body, string(ord.patch.Type()), err
	}
	if ord.sent != ord.obj { // A subresource's own object.
		if k, err = kindOf(scheme, ord.sent); err != nil {
			return nil, "", err
		}
	}
	body, err = encode(ord.sent, k.gvk)
	return body, jsonMedia, err
}

// receive decodes an answer into obj, unless that is of another kind.
func (l *live) receive(data []byte, obj Object) error {
	var answered metav1.TypeMeta
	if err := decode(data, &answered); err != nil {
		return err
	}
	k, err := kindOf(l.scheme, obj)
	if err != nil || answered.Kind != k.gvk.Kind {
		return err // As a subresource that answers with a Status.
	}
	return l.decodeObject(data, k, obj)
}

// Apply implements [Writer].
func (c *Cluster) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...ApplyOption) error {
	return c.apply(ctx, obj, "", opts)
}

func (c *Cluster) apply(ctx context.Context, obj runtime.ApplyConfiguration, subresource string, opts []ApplyOption) error {
	var o WriteOptions
	for _, opt := range given(opts) {
		opt.ApplyToApply(&o)
	}
	if o.FieldManager == "" {
		o.FieldManager = c.o.FieldManager
	}
	if misuse.IsNil(obj) {
		return errors.New("apply: the apply configuration is nil: make one with k8s.io/client-go/applyconfigurations, or ApplyUnstructured")
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
	var w *write
	if !o.DryRun {
		w = newWrite(ctx, p, head.GroupVersionKind(), ownerOf(ctx, &head))
	}
	request := c.live.request("PATCH", p).SetHeader("Content-Type", string(types.ApplyPatchType)).Body(body)
	return c.send(ctx, request, o.params(), w, func(data []byte) error {
		if u, is := obj.(json.Unmarshaler); is { // Unstructured: the caller's own object is changed.
			return decode(data, u)
		}
		fresh := reflect.New(reflect.TypeOf(obj).Elem())
		if err := decode(data, fresh.Interface()); err != nil {
			return err
		}
		reflect.ValueOf(obj).Elem().Set(fresh.Elem())
		return nil
	})
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
	var w *write
	if !o.DryRun {
		w = newWrite(ctx, p, k.gvk, ownerOf(ctx, obj))
		w.deletes = true
		w.known = c.seen(w, obj)
	}
	request := c.live.request("DELETE", p).SetHeader("Content-Type", jsonMedia).Body(body)
	return c.send(ctx, request, o.params(), w, func([]byte) error { return nil })
}

// seen collects the states in which this process has seen the object that w is about to delete.
func (c *Cluster) seen(w *write, obj Object) []identity {
	known := []identity{{obj.GetUID(), obj.GetResourceVersion()}}
	l := c.books.of(w.place.GroupResource())
	if e := l.entryOf(w.key); e != nil {
		known = append(known, identity{e.uid, e.version})
	}
	if held := l.held(w.key); held != nil {
		known = append(known, identity{held.GetUID(), held.GetResourceVersion()})
	}
	return known
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
	var w *write
	if !o.DryRun {
		w = newWrite(ctx, p, k.gvk, ownerOf(ctx, nil))
		w.deletes, w.all = true, true
	}
	request := c.live.collection("DELETE", p, o.ListOptions).SetHeader("Content-Type", jsonMedia).Body(body)
	return c.send(ctx, request, o.params(), w, func([]byte) error { return nil })
}

// errPanicked is why nobody knows what came of a write whose goroutine panicked.
var errPanicked = errors.New("the writer panicked")

// send sends a write: w is in the books before, and its effect after. w is nil for a dry run.
func (c *Cluster) send(ctx context.Context, r *rest.Request, params url.Values, w *write, receive func([]byte) error) (err error) {
	if err := r.Error(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if w == nil {
		data, err := answer(ctx, r, params)
		if err != nil {
			return err
		}
		return receive(data)
	}
	l := c.books.of(w.place.GroupResource())
	l.open(w)
	why := errPanicked
	defer func() {
		if why != nil {
			w.blur(why, time.Now().Add(c.o.RequestTimeout))
		}
	}()
	data, err := answer(ctx, r, params)
	if err != nil {
		if why = err; !mayHaveTakenEffect(err) {
			why = nil
			l.close(w, nil)
		}
		return err
	}
	why = nil
	if e, told := w.effect(data); told {
		l.close(w, e)
	} else {
		w.blur(nil, time.Now())
	}
	return receive(data)
}

// isGone says whether an object that the server answered with is not there any more. One without a grace period is: a Namespace
// stays until its spec.finalizers are gone.
//
// Source: ShouldDeleteDuringUpdate in k8s.io/apiserver v0.37.2 pkg/registry/generic/registry/store.go.
func isGone(m *metav1.ObjectMeta) bool {
	return m.DeletionTimestamp != nil && len(m.Finalizers) == 0 && m.DeletionGracePeriodSeconds != nil && *m.DeletionGracePeriodSeconds == 0
}
