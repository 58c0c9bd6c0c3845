package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/watchcache"
	"github.com/flyball-dev/flyball/localapi/storage"
)

// Part is the part of an object that a write changes.
type Part int

// The parts.
const (
	Main        Part = iota // everything but status
	Status                  // the status subresource
	Subresource             // another subresource: the change itself decides what it touches
)

// Change is a write to an existing object or, if allowed, to one that does not exist yet.
type Change struct {
	Part Part

	// Next computes the state to store from the current one, which is shared and must not be changed. It runs again if
	// another write came in between. old is nil if the object does not exist; a NotFound error then means not to create
	// it.
	Next func(old runtime.Object) (runtime.Object, error)

	// AllowCreate allows Next to be called with a nil old.
	AllowCreate bool

	// Validate, if not nil, validates the next state in place of the definition's rules for the part.
	Validate func(obj, old runtime.Object) field.ErrorList

	// UID is the identity that the object must have; "" is any.
	UID types.UID

	WriteOptions
}

// updateAttempts is how often a change that names no resource version is computed again after losing a race.
const updateAttempts = 100

// Update replaces an object by the state that the change computes, and reports whether it was created.
func (r *Resource) Update(ctx context.Context, namespace, name string,
	c Change,
) (_ *watchcache.Object, created bool, err error) {
	key := r.key(namespace, name).String()
	for range updateAttempts {
		old, ok, err := r.get(ctx, key)
		if err != nil {
			return nil, false, err
		}
		if !ok {
			o, err := r.updateMissing(ctx, namespace, name, c)
			if err == nil || !apierrors.IsAlreadyExists(err) {
				return o, true, err
			}
			continue
		}
		o, err := r.updateExisting(ctx, old, c)
		if !errors.Is(err, storage.ErrConflict) && !errors.Is(err, storage.ErrNotFound) {
			return o, false, err
		}
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
	}
	return nil, false, r.conflict(name)
}

// updateMissing creates the object of an update or apply.
func (r *Resource) updateMissing(ctx context.Context, namespace, name string, c Change) (*watchcache.Object, error) {
	if !c.AllowCreate {
		return nil, r.notFound(name)
	}
	if c.UID != "" {
		return nil, apierrors.NewConflict(r.Definition.GroupResource(), name,
			r.wrongUID(&metav1.ObjectMeta{Namespace: namespace, Name: name}, c.UID))
	}
	obj, err := c.Next(nil)
	if err != nil {
		return nil, err
	}
	m := resource.Meta(obj)
	if uid := m.GetUID(); uid != "" {
		return nil, apierrors.NewConflict(r.Definition.GroupResource(), name,
			fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	}
	if err := r.matchNamespace(namespace, m); err != nil {
		return nil, err
	}
	wipe(m)
	m.SetResourceVersion("")
	if obj, err = r.admitNew(ctx, obj, namespace, c.WriteOptions); err != nil {
		return nil, err
	}
	return r.create(ctx, obj, c.WriteOptions)
}

// updateExisting tries once to replace old. storage.ErrConflict and ErrNotFound mean that old is no longer current.
func (r *Resource) updateExisting(ctx context.Context, old *watchcache.Object,
	c Change,
) (_ *watchcache.Object, err error) {
	name := old.Meta.GetName()
	if c.UID != "" && c.UID != old.Meta.GetUID() {
		return nil, apierrors.NewConflict(r.Definition.GroupResource(), name, r.wrongUID(old.Meta, c.UID))
	}
	obj, err := c.Next(old.Object)
	if err != nil {
		return nil, err
	}
	if obj, err = c.mutate(ctx, obj, old.Object); err != nil {
		return nil, err
	}
	m := resource.Meta(obj)
	if c.Admit != nil {
		if err := c.Admit(obj, old.Object); err != nil {
			return nil, err
		}
	}
	if err := r.checkVersion(m, old, name); err != nil {
		return nil, err
	}
	if err := r.matchNamespace(old.Meta.GetNamespace(), m); err != nil {
		return nil, err
	}
	r.prepareUpdate(ctx, obj, old, m, c.Part)
	keepTimesOfEqualManagedFields(obj, old.Object, m, old.Meta)
	done, err := r.allocate(ctx, obj, old.Object)
	if err != nil {
		return nil, err
	}
	stored := false
	defer func() { done(stored) }()
	if err := r.validateUpdate(ctx, obj, m, old, c); err != nil {
		return nil, err
	}
	if c.Part == Main {
		r.warn(obj, old.Object, c.WriteOptions)
	}
	if err := c.permit(ctx, obj, old.Object); err != nil {
		return nil, err
	}
	o, err := r.replace(ctx, obj, old, c.WriteOptions)
	stored = err == nil && !c.DryRun
	return o, err
}

// wrongUID returns the real server's error for an object that is not the one that the client means. have is empty
// metadata if the object does not exist.
//
// Source: k8s.io/apiserver pkg/storage/interfaces.go Preconditions.Check.
func (r *Resource) wrongUID(have metav1.Object, want types.UID) error {
	return r.storageError(have,
		fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", want, have.GetUID()))
}

// storageError returns an error of the real server's storage about an object.
//
// Source: k8s.io/apiserver pkg/storage/errors.go StorageError.
func (r *Resource) storageError(of metav1.Object, message string) error {
	return fmt.Errorf("StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: %s",
		r.etcdKey(of.GetNamespace(), of.GetName()), message)
}

// etcdKey returns the key at which the real server stores an object. A few error messages contain it.
//
// Source: k8s.io/kubernetes pkg/kubeapiserver/default_storage_factory_builder.go SpecialDefaultResourcePrefixes.
func (r *Resource) etcdKey(namespace, name string) string {
	plural := r.Definition.Plural
	switch {
	case plural == "endpoints" || plural == "nodes" || plural == "services":
		plural = map[string]string{
			"endpoints": "services/endpoints", "nodes": "minions",
			"services": "services/specs",
		}[plural]
	case r.Unstructured:
		plural = r.Definition.GroupVersion.Group + "/" + plural
	}
	if r.Definition.Namespaced {
		plural += "/" + namespace
	}
	return "/registry/" + plural + "/" + name
}

// checkVersion implements optimistic concurrency: the version that the client names must be the current one.
func (r *Resource) checkVersion(m metav1.Object, old *watchcache.Object, name string) error {
	switch version := m.GetResourceVersion(); {
	case version == strconv.FormatInt(old.Revision, 10):
		return nil
	case version != "" && version != "0":
		if _, err := strconv.ParseUint(version, 10, 64); err != nil {
			return err // without a reason, like the real server
		}
		return r.conflict(name)
	case r.Definition.NeedsResourceVersion:
		kind := r.Definition.GroupKind()
		kind.Kind = r.Definition.Plural // as the real server prints it
		return apierrors.NewInvalid(kind, name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
		})
	}
	return nil
}

// prepareUpdate restores the fields that a client may not change.
//
// Source: k8s.io/apiserver pkg/registry/rest/update.go BeforeUpdate.
func (r *Resource) prepareUpdate(ctx context.Context, obj runtime.Object, old *watchcache.Object, m metav1.Object,
	part Part,
) {
	d, o := r.Definition, old.Meta
	if part != Subresource { // a subresource's Merge sets the generation itself
		m.SetGeneration(o.GetGeneration())
	}
	switch {
	case part == Main && d.PrepareUpdate != nil:
		d.PrepareUpdate(ctx, obj, old.Object)
	case part == Status && d.PrepareStatusUpdate != nil:
		d.PrepareStatusUpdate(ctx, obj, old.Object)
	}
	if m.GetUID() == "" {
		m.SetUID(o.GetUID())
	}
	if t := o.GetCreationTimestamp(); !t.IsZero() {
		m.SetCreationTimestamp(t)
	}
	if !o.GetDeletionTimestamp().IsZero() {
		m.SetDeletionTimestamp(o.GetDeletionTimestamp())
	}
	if o.GetDeletionGracePeriodSeconds() != nil && m.GetDeletionGracePeriodSeconds() == nil {
		m.SetDeletionGracePeriodSeconds(o.GetDeletionGracePeriodSeconds())
	}
	m.SetSelfLink("")
	m.SetResourceVersion(o.GetResourceVersion())
}

// replace stores obj in place of old. If they are equal it stores nothing; if only a finalizer kept the object, it
// removes it.
func (r *Resource) replace(ctx context.Context, obj runtime.Object, old *watchcache.Object,
	o WriteOptions,
) (*watchcache.Object, error) {
	if r.finished(obj, old) {
		if !o.DryRun {
			if _, err := r.remove(ctx, old); err != nil {
				return nil, err
			}
		}
		// The answer to a write is the object as written, even if it is gone now.
		return r.object(obj, old.Key, old.Revision), nil
	}
	m := resource.Meta(obj)
	m.SetResourceVersion("") // it is not stored
	value, err := r.value(ctx, obj, m, o)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(value, old.Value) {
		// There is nothing to write. But if old was replaced meanwhile, obj was computed from an outdated state.
		if current, ok, err := r.Objects.Get(old.Key); err != nil || !ok || current.Revision != old.Revision {
			return nil, errors.Join(err, storage.ErrConflict)
		}
		return old, nil
	}
	if o.DryRun {
		return r.object(obj, old.Key, old.Revision), nil
	}
	return r.put(ctx, old.Record, obj, value)
}

// finished reports whether a write removed the last reason for a deleted object to stay.
//
// Source: k8s.io/apiserver pkg/registry/generic/registry/store.go ShouldDeleteDuringUpdate.
func (r *Resource) finished(obj runtime.Object, old *watchcache.Object) bool {
	if len(resource.Meta(obj).GetFinalizers()) > 0 || old.Meta.GetDeletionTimestamp() == nil {
		return false
	}
	if r.Definition.Finalizing != nil && r.Definition.Finalizing(obj) {
		return false
	}
	grace := old.Meta.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

// keepTimesOfEqualManagedFields gives obj the times of old's managed fields if nothing else differs. Otherwise a write
// without changes would change the times.
//
// Source: k8s.io/apiserver pkg/endpoints/handlers/fieldmanager/equality.go.
func keepTimesOfEqualManagedFields(obj, old runtime.Object, m, oldMeta metav1.Object) {
	mine, theirs := m.GetManagedFields(), oldMeta.GetManagedFields()
	if len(mine) == 0 || len(mine) != len(theirs) {
		return
	}
	for i := range mine {
		a, b := mine[i], theirs[i]
		a.Time, b.Time = nil, nil
		if !reflect.DeepEqual(a, b) {
			return
		}
	}
	probe := watchcache.ShallowCopy(obj)
	p := resource.Meta(probe)
	p.SetManagedFields(theirs)
	p.SetResourceVersion(oldMeta.GetResourceVersion())
	if equality.Semantic.DeepEqual(probe, old) {
		m.SetManagedFields(theirs)
	}
}
