package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/codec"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/watchcache"
	"github.com/flyball-dev/flyball/localapi/storage"
)

// Env holds what all resources of a server share.
type Env struct {
	Store     storage.Storage
	Tenant    string
	Codec     *codec.Codec
	Managers  *Managers
	Allocator resource.Allocator

	// UID returns the identity of a new object, Suffix the random end of a generated name.
	UID    func() types.UID
	Suffix func() string

	// Namespaces is the resource of the namespaces in which namespaced objects must be. If it is nil, any namespace
	// exists.
	Namespaces *Resource

	// Written is called after every write, with no lock held. size is the number of bytes that the object had before
	// and has now, as stored: all that the history holds because of the write.
	Written func(revision int64, size int)
}

// Resource performs the operations on one type.
type Resource struct {
	Definition *resource.Definition
	Objects    *watchcache.Collection

	// Changed, if not nil, is called after every write, in the writer's goroutine and with no lock held. removed means
	// that the object is gone. It is set before the resource is used.
	Changed func(ctx context.Context, o *watchcache.Object, removed bool)

	// Unstructured means that the kind has no Go type.
	Unstructured bool
	Protobuf     bool // see [codec.HasProtobuf]

	env       *Env
	allocated onceSuccessful
	asStored  bool // see AsStored

	// retired is closed when the resource is no longer served, because the type has changed or is gone.
	retired    chan struct{}
	retireOnce sync.Once
}

// NewResource returns the operations on the type d.
func NewResource(env *Env, d *resource.Definition) *Resource {
	r := &Resource{
		Definition: d, Unstructured: codec.IsUnstructured(d.New()), Protobuf: codec.HasProtobuf(d.New()),
		env: env, retired: make(chan struct{}),
	}
	r.Objects = watchcache.New(env.Store, r.key("", "").Prefix(), r.decode)
	return r
}

// Retire ends the resource and its watches. Requests in flight continue.
func (r *Resource) Retire() {
	r.retireOnce.Do(func() { close(r.retired) })
	r.env.Managers.forget(r.Definition)
}

// Retired returns a channel that [Resource.Retire] closes.
func (r *Resource) Retired() <-chan struct{} { return r.retired }

// key returns the key of an object in the store, or that of a collection if the name is empty.
func (r *Resource) key(namespace, name string) storage.Key {
	if !r.Definition.Namespaced {
		namespace = ""
	}
	return storage.Key{
		Tenant: r.env.Tenant, Group: r.Definition.GroupKind().Group, Resource: r.Definition.Plural,
		Namespace: namespace, Name: name,
	}
}

// tag is what a writer knows of the value that it stores.
type tag struct {
	definition *resource.Definition // how the object was decoded
	object     runtime.Object
}

// Restore returns the object of a stored record, in this version of the type. It is read-only.
func (r *Resource) Restore(record storage.Record) (runtime.Object, error) { return r.decode(record) }

// decode turns a stored record into an object of this version of the type. It ignores the decoded form if that belongs
// to another version or another schema.
func (r *Resource) decode(record storage.Record) (runtime.Object, error) {
	if t, ok := record.Tag.(tag); ok && t.definition == r.Definition {
		return t.object, nil
	}
	if f := r.Definition.Family; f != nil {
		return r.restoreMember(record.Value, f)
	}
	if r.Definition.Convert != nil {
		return r.restoreStored(record)
	}
	obj, err := r.env.Codec.Restore(record.Value, r.New())
	if err != nil || r.Definition.Coerce == nil {
		return obj, err
	}
	obj.GetObjectKind().SetGroupVersionKind(r.Definition.GroupVersionKind())
	if _, err := r.Definition.Coerce(obj); err != nil {
		return nil, err
	}
	r.Definition.Default(obj)
	return obj, nil
}

// restoreMember is decode for a member of a family.
func (r *Resource) restoreMember(value []byte, f *resource.Family) (runtime.Object, error) {
	obj, err := r.env.Codec.Restore(value, f.Stored().New())
	if err != nil {
		return nil, err
	}
	converted, ok := f.Convert(obj, r.Definition.GroupVersionKind())
	if !ok {
		return nil, fmt.Errorf("stored %v is not a %v", obj.GetObjectKind().GroupVersionKind(),
			r.Definition.GroupVersionKind())
	}
	return converted, nil
}

// encode returns obj as it is stored, in the storage version.
func (r *Resource) encode(ctx context.Context, obj runtime.Object) ([]byte, error) {
	if f := r.Definition.Family; f != nil {
		stored, ok := f.Convert(obj, f.Stored().Kind)
		if !ok {
			return nil, fmt.Errorf("%v does not belong to this resource", obj.GetObjectKind().GroupVersionKind())
		}
		return r.env.Codec.Stored(stored)
	}
	v := r.Definition.StorageVersion
	if r.asStored || v == "" || v == r.Definition.GroupVersion.Version {
		return r.env.Codec.Stored(obj)
	}
	obj, err := r.Convert(ctx, obj, r.Definition.GroupVersionKind().GroupKind().WithVersion(v))
	if err != nil {
		return nil, err
	}
	if r.Definition.Convert != nil {
		if err := r.Definition.Conform(obj); err != nil {
			return nil, err
		}
	}
	return r.env.Codec.Stored(obj)
}

// New returns an empty object with its kind set.
func (r *Resource) New() runtime.Object {
	obj := r.Definition.New()
	obj.GetObjectKind().SetGroupVersionKind(r.Definition.GroupVersionKind())
	return obj
}

// Get returns the current state of an object, which must not be older than resourceVersion ("" and "0": any). Errors:
// NotFound, Timeout if the version is not reached.
func (r *Resource) Get(ctx context.Context, namespace, name, resourceVersion string) (*watchcache.Object, error) {
	if _, err := plainVersion(resourceVersion); err != nil {
		return nil, err
	}
	if err := r.reached(ctx, resourceVersion); err != nil {
		return nil, err
	}
	o, ok, err := r.get(ctx, r.key(namespace, name).String())
	if err != nil {
		return nil, r.corrupt(err)
	}
	if !ok {
		return nil, r.notFound(name)
	}
	return o, nil
}

// GetAt returns the state of an object as of a past revision. Errors: NotFound, Expired.
func (r *Resource) GetAt(ctx context.Context, namespace, name string, revision int64) (*watchcache.Object, error) {
	key := r.key(namespace, name).String()
	page, err := r.env.Store.List(ctx, key, storage.ListOptions{Limit: 1, Revision: revision})
	switch {
	case errors.Is(err, storage.ErrCompacted):
		return nil, expiredList("", "")
	case err != nil:
		return nil, err
	case len(page.Records) == 0 || page.Records[0].Key != key:
		return nil, r.notFound(name)
	}
	o, err := r.past(page.Records[0])
	if err != nil {
		return nil, err
	}
	converted, err := r.inVersion(ctx, []*watchcache.Object{o})
	if err != nil {
		return nil, err
	}
	return converted[0], nil
}

// freshWait is how long a read waits for a version that the store has not reached.
//
// Source: k8s.io/apiserver v0.37.2 pkg/storage/cacher/watch_cache.go blockTimeout.
const freshWait = 3 * time.Second

// reached waits up to freshWait until the store is at resourceVersion or later. Errors: Timeout.
func (r *Resource) reached(ctx context.Context, resourceVersion string) error {
	want, err := ParseResourceVersion(resourceVersion)
	if err != nil {
		return err
	}
	current, _ := r.env.Store.Revision()
	if want <= current {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, freshWait)
	defer cancel()
	writes, err := r.env.Store.Watch(ctx, storage.TenantPrefix(r.env.Tenant), current)
	if err != nil {
		return err
	}
	defer writes.Close()
	for current < want {
		if _, current, err = writes.Next(ctx); err != nil {
			return tooLargeResourceVersion(want, current)
		}
	}
	return nil
}

// plainVersion parses the resource version of a get or a watch. Its error is not a BadRequest, because the real server
// returns a plain error here.
func plainVersion(s string) (int64, error) {
	v, err := ParseResourceVersion(s)
	if err != nil {
		return 0, plainError(strings.TrimPrefix(err.Error(), invalidVersion))
	}
	return v, nil
}

const invalidVersion = "invalid resource version: "

// ParseResourceVersion parses a client's resource version. Errors: BadRequest.
func ParseResourceVersion(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	v, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, apierrors.NewBadRequest(invalidVersion +
			field.Invalid(field.NewPath("resourceVersion"), s, err.Error()).Error())
	}
	return int64(v), nil
}

// tooLargeResourceVersion returns the error for a version that the store has not reached.
//
// Source: k8s.io/apiserver pkg/storage/errors.go NewTooLargeResourceVersionError.
func tooLargeResourceVersion(want, current int64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", want, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{
		{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"},
	}
	return err
}

func (r *Resource) notFound(name string) error {
	return apierrors.NewNotFound(r.Definition.GroupResource(), name)
}

const optimisticLock = "the object has been modified; please apply your changes to the latest version and try again"

func (r *Resource) conflict(name string) error {
	return apierrors.NewConflict(r.Definition.GroupResource(), name, errors.New(optimisticLock))
}

// plainError returns an error that the real server sends without a reason.
func plainError(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonUnknown,
		Message: message,
	}}
}

// object wraps a computed state that the collection does not hold, or does not hold yet.
func (r *Resource) object(obj runtime.Object, key string, revision int64) *watchcache.Object {
	if revision > 0 {
		obj = watchcache.WithRevision(obj, revision)
	}
	record := storage.Record{Key: key, Revision: revision}
	return &watchcache.Object{Object: obj, Meta: resource.Meta(obj), Record: record}
}

// put stores obj in place of old, and hands it over to the cache, if old is still what is stored. To create an object,
// old has only the key.
func (r *Resource) put(ctx context.Context, old storage.Record, obj runtime.Object,
	value []byte,
) (*watchcache.Object, error) {
	write := storage.Write{Key: old.Key, Value: value, Expected: old.Revision, Tag: tag{r.Definition, obj}}
	if r.Definition.Convert != nil {
		write.Tag = nil // what is stored is what the webhook made of obj
	}
	revision, err := r.env.Store.Put(ctx, write)
	if err != nil {
		return nil, err
	}
	if err := r.written(revision, len(old.Value)+len(value)); err != nil {
		return nil, err
	}
	o, err := r.stored(ctx, obj, old.Key, revision)
	if err == nil && r.Changed != nil {
		r.Changed(ctx, o, false)
	}
	return o, err
}

// stored returns the state that was stored at a revision. If it is still current, it is the same object that readers
// and watchers get, so that all share one encoding.
func (r *Resource) stored(ctx context.Context, obj runtime.Object, key string,
	revision int64,
) (*watchcache.Object, error) {
	if current, ok, err := r.get(ctx, key); err != nil {
		return nil, err
	} else if ok && current.Revision == revision {
		return current, nil
	}
	return r.object(obj, key, revision), nil
}

// remove deletes the stored object o, if it is still at its revision, and returns its last state.
func (r *Resource) remove(ctx context.Context, o *watchcache.Object) (*watchcache.Object, error) {
	revision, err := r.env.Store.Delete(ctx, o.Key, o.Revision)
	if err != nil {
		return nil, err
	}
	if err := r.release(ctx, o.Object); err != nil {
		return nil, err
	}
	if err := r.written(revision, len(o.Value)); err != nil {
		return nil, err
	}
	last := r.object(o.Object, o.Key, revision)
	if r.Changed != nil {
		r.Changed(ctx, last, true)
	}
	return last, nil
}

// written makes a write visible to watches and gives the server a chance to compact.
func (r *Resource) written(revision int64, size int) error {
	if err := r.Objects.Sync(); err != nil {
		return err
	}
	if r.env.Written != nil {
		r.env.Written(revision, size)
	}
	return nil
}
