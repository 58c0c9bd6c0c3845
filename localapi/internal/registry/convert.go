package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/watchcache"
	"github.com/flyball-dev/flyball/localapi/storage"
)

// Custom resources with a conversion webhook are converted when a request needs them, not when the collection reads
// them: a webhook takes long, may fail, and may itself read and write this server. So the collection holds them in the
// version in which they are stored, and every reader of the collection passes what it takes from there through
// inVersion.

// AsStored returns operations on the same objects that do not call the webhook of the type: objects are read in the
// version in which they are stored, and a deletion that only marks them does not change the version. It is for deleting
// them. Only r may be retired.
func (r *Resource) AsStored() *Resource {
	if r.Definition.Convert == nil {
		return r
	}
	return &Resource{
		Definition: r.Definition, Objects: r.Objects, Changed: r.Changed, Unstructured: r.Unstructured,
		Protobuf: r.Protobuf, env: r.env, retired: r.retired, asStored: true,
	}
}

// get returns the current state of the object under key.
func (r *Resource) get(ctx context.Context, key string) (*watchcache.Object, bool, error) {
	o, ok, err := r.Objects.Get(key)
	if err != nil || !ok || r.Definition.Convert == nil || r.asStored {
		return o, ok, err
	}
	converted, err := r.inVersion(ctx, []*watchcache.Object{o})
	if err != nil {
		return nil, false, &undecodable{o, err}
	}
	return converted[0], true, nil
}

// undecodable is the error for a stored object that cannot be converted.
type undecodable struct {
	object *watchcache.Object
	err    error
}

func (e *undecodable) Error() string {
	return fmt.Sprintf("object not decodable revision=%d: %v", e.object.Revision, e.err)
}

// corrupt returns an error of get as the real server words it when it reads or deletes an object.
//
// Source: k8s.io/apiserver v0.37.2 pkg/storage/errors.go NewCorruptObjError.
func (r *Resource) corrupt(err error) error {
	var e *undecodable
	if !errors.As(err, &e) {
		return err
	}
	key := strings.TrimPrefix(r.etcdKey(e.object.Meta.GetNamespace(), e.object.Meta.GetName()), "/registry")
	return apierrors.NewInternalError(fmt.Errorf("StorageError: corrupt object, Code: 7, Key: %s, ResourceVersion: 0, "+
		"AdditionalErrorMsg: %w", key, err))
}

// inVersion returns objects in the version of the resource. all is not changed, and may have nils.
//
// The first reader of a state calls the webhook, once for all states that it is the first to read, and the others wait.
// If that call fails, each of them calls the webhook itself: the failure may be about another object, or the first
// reader may have given up.
func (r *Resource) inVersion(ctx context.Context, all []*watchcache.Object) ([]*watchcache.Object, error) {
	if r.Definition.Convert == nil || r.asStored {
		return all, nil
	}
	want := r.Definition.GroupVersionKind()
	result := slices.Clone(all)
	var pending, mine []*watchcache.Conversion
	var at []int // the positions of pending in all
	for i, o := range all {
		if o == nil || o.GetObjectKind().GroupVersionKind() == want {
			continue
		}
		c, first := o.Conversion()
		if first {
			mine = append(mine, c)
		}
		pending, at = append(pending, c), append(at, i)
	}
	// No reader waits before it has finished its own, so no two wait for each other.
	if err := r.convert(ctx, mine); err != nil {
		return nil, err
	}
	var failed []*watchcache.Conversion
	for n, c := range pending {
		o, err := c.Wait(ctx)
		if err != nil {
			return nil, err
		}
		if o == nil {
			pending[n] = watchcache.NewConversion(c.Of)
			failed = append(failed, pending[n])
		}
	}
	if err := r.convert(ctx, failed); err != nil {
		return nil, err
	}
	for n, i := range at {
		var err error
		if result[i], err = pending[n].Wait(ctx); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// convert makes conversions with one call of the webhook, and finishes them all.
func (r *Resource) convert(ctx context.Context, all []*watchcache.Conversion) error {
	if len(all) == 0 {
		return nil
	}
	made := make([]*watchcache.Object, len(all))
	defer func() { // even after a panic, since others wait
		for i, c := range all {
			c.Finish(made[i])
		}
	}()
	var raw []*unstructured.Unstructured
	for _, c := range all {
		raw = append(raw, asStored(c.Of.Object))
	}
	converted, err := r.Definition.Convert(ctx, raw, r.Definition.GroupVersion)
	if err != nil {
		return err
	}
	for i, c := range all {
		if _, err := r.Definition.Coerce(converted[i]); err != nil {
			return err
		}
		o := r.object(converted[i], c.Of.Key, c.Of.Revision)
		o.Value = c.Of.Value
		made[i] = o
	}
	return nil
}

// asStored returns an object without the resource version, which is not stored.
func asStored(obj runtime.Object) *unstructured.Unstructured {
	u := watchcache.ShallowCopy(obj).(*unstructured.Unstructured)
	u.SetResourceVersion("")
	return u
}

// Convert returns obj, an object of this type, as one of the kinds of the definition. It does not change obj.
func (r *Resource) Convert(ctx context.Context, obj runtime.Object,
	kind schema.GroupVersionKind,
) (runtime.Object, error) {
	if f := r.Definition.Family; f != nil {
		converted, ok := f.Convert(obj.DeepCopyObject(), kind)
		if !ok {
			return nil, fmt.Errorf("%v is not a %v", obj.GetObjectKind().GroupVersionKind(), kind)
		}
		return converted, nil
	}
	if u, ok := obj.(*unstructured.Unstructured); ok && r.Definition.Convert != nil && u.GroupVersionKind() != kind {
		converted, err := r.Definition.Convert(ctx, []*unstructured.Unstructured{u}, kind.GroupVersion())
		if err != nil {
			return nil, err
		}
		return converted[0], nil
	}
	converted := watchcache.ShallowCopy(obj)
	converted.GetObjectKind().SetGroupVersionKind(kind)
	return converted, nil
}

// restoreStored decodes a record of a type with a conversion webhook, in the version in which it is stored.
func (r *Resource) restoreStored(record storage.Record) (runtime.Object, error) {
	obj, err := r.env.Codec.Restore(record.Value, &unstructured.Unstructured{})
	if err != nil {
		return nil, err
	}
	return obj, r.Definition.Conform(obj)
}

// maxStored bounds the size of a stored object, in bytes. It is the default limit of etcd for one request.
//
// Source: go.etcd.io/etcd server/embed DefaultMaxRequestBytes.
const maxStored = 3 << 19

// value returns obj, whose metadata is m, as it will be written to the store. If an object is too large with its
// managed fields, it drops them, unless the write is about them. Errors: RequestEntityTooLarge.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/handlers/create.go isTooLargeError.
func (r *Resource) value(ctx context.Context, obj runtime.Object, m metav1.Object, o WriteOptions) ([]byte, error) {
	value, err := r.encode(ctx, obj)
	if r.Definition.Convert != nil && err != nil {
		return nil, err // as the real server words it
	}
	if err != nil {
		return nil, fmt.Errorf("encode %s %q: %w", r.Definition.Kind, m.GetName(), err)
	}
	if o.DryRun || len(value) <= maxStored {
		return value, nil
	}
	if len(m.GetManagedFields()) > 0 && !o.Apply {
		m.SetManagedFields(nil)
		return r.value(ctx, obj, m, o)
	}
	return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("%s %q has %d bytes as it is stored: the limit "+
		"is %d", r.Definition.Kind, m.GetName(), len(value), maxStored))
}

// goType is the converter of one kind with a Go type. Unlike the converter that it wraps, it does not check its objects
// against the schema. The schema describes the Go type, so the compiler has checked almost everything. The one thing
// that it cannot check is that a list's items have their keys, and the comparison that follows finds that too. The
// check would take a third of the time that computing the managers takes.
//
// Applied configurations are checked nevertheless: they are unstructured, and must not have duplicates.
type goType struct {
	managedfields.TypeConverter
	kind schema.GroupVersionKind

	// schema is the kind's schema. It is known once an object has been converted.
	schema atomic.Pointer[typed.ParseableType]
}

// ObjectToTyped implements [managedfields.TypeConverter].
func (t *goType) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	_, ok := obj.(*unstructured.Unstructured)
	if ok || obj.GetObjectKind().GroupVersionKind() != t.kind || !slices.Contains(opts, typed.AllowDuplicates) {
		return t.TypeConverter.ObjectToTyped(obj, opts...)
	}
	s := t.schema.Load()
	if s == nil {
		checked, err := t.TypeConverter.ObjectToTyped(obj, opts...)
		if err == nil {
			t.schema.Store(&typed.ParseableType{Schema: checked.Schema(), TypeRef: checked.TypeRef()})
		}
		return checked, err
	}
	v, err := value.NewValueReflect(obj)
	if err != nil {
		return nil, err
	}
	//lint:ignore SA1019 deprecated because checking has become cheap, but it is not cheap enough here
	return typed.AsTypedUnvalidated(v, s.Schema, s.TypeRef), nil
}

// Seed stores obj as it is, and adds only what every stored object has. It takes ownership of obj. It neither validates
// nor allocates: before the first allocation for a client, the allocations of all stored objects are read.
func (r *Resource) Seed(ctx context.Context, obj runtime.Object) error {
	m := resource.Meta(obj)
	obj.GetObjectKind().SetGroupVersionKind(r.Definition.GroupVersionKind())
	if r.Definition.Default != nil {
		r.Definition.Default(obj)
	}
	switch {
	case !r.Definition.Namespaced:
		m.SetNamespace("")
	case m.GetNamespace() == "":
		m.SetNamespace(metav1.NamespaceDefault)
	}
	if m.GetName() == "" && m.GetGenerateName() != "" {
		m.SetName(r.generateName(m.GetGenerateName()))
	}
	if m.GetUID() == "" {
		m.SetUID(r.env.UID())
	}
	if t := m.GetCreationTimestamp(); t.IsZero() {
		m.SetCreationTimestamp(now())
	}
	m.SetResourceVersion("")
	if errs := pathSegment(m); len(errs) > 0 {
		return r.invalid(m.GetName(), errs)
	}
	value, err := r.encode(ctx, obj)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	key := r.key(m.GetNamespace(), m.GetName()).String()
	if _, err = r.put(ctx, storage.Record{Key: key}, obj, value); errors.Is(err, storage.ErrConflict) {
		return r.alreadyExists(key, m.GetName())
	}
	return err
}
