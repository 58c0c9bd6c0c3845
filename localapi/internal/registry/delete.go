package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/watchcache"
	"github.com/flyball-dev/flyball/localapi/storage"
)

// immortal are the namespaces that cannot be deleted.
//
// Source: k8s.io/apiserver pkg/admission/plugin/namespace/lifecycle.
var immortal = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}

// Delete removes an object, or begins to. removed is false if the object stays for a grace period or for finalizers.
// The object returned is its last or its present state. Delete ignores the option to delete objects that cannot be
// read, since all objects here can be. a may be nil.
//
// Source: k8s.io/apiserver pkg/registry/generic/registry/store.go Delete.
func (r *Resource) Delete(ctx context.Context, namespace, name string,
	o metav1.DeleteOptions, a Admission,
) (_ *watchcache.Object, removed bool, err error) {
	if r.env.Namespaces == r && slices.Contains(immortal, name) {
		return nil, false,
			apierrors.NewForbidden(r.Definition.GroupResource(), name, errors.New("this namespace may not be deleted"))
	}
	key := r.key(namespace, name).String()
	for {
		old, ok, err := r.get(ctx, key)
		if err != nil {
			return nil, false, r.corrupt(err)
		}
		if !ok {
			return nil, false, r.notFound(name)
		}
		if ptr.Deref(o.IgnoreStoreReadErrorWithClusterBreakingPotential, false) {
			return nil, false, apierrors.NewConflict(r.Definition.GroupResource(), name, r.storageError(old.Meta,
				"unsafe deletion is not allowed because the object is decodable from storage"))
		}
		obj, removed, err := r.deleteOnce(ctx, old, *o.DeepCopy(), a)
		if !errors.Is(err, storage.ErrConflict) && !errors.Is(err, storage.ErrNotFound) {
			return obj, removed, err
		}
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
	}
}

func (r *Resource) deleteOnce(ctx context.Context, old *watchcache.Object,
	o metav1.DeleteOptions, a Admission,
) (*watchcache.Object, bool, error) {
	if err := r.checkPreconditions(old, o.Preconditions); err != nil {
		return nil, false, err
	}
	if o.GracePeriodSeconds != nil && *o.GracePeriodSeconds < 0 {
		*o.GracePeriodSeconds = 1
	}
	obj := old.DeepCopyObject()
	m := resource.Meta(obj)
	graceful, pending := r.beginDelete(obj, m, &o)
	if pending {
		return old, false, nil // under way already, and the request does not shorten it
	}
	m.SetFinalizers(r.deletionFinalizers(m, o))
	finalizing := r.Definition.Finalizing != nil && r.Definition.Finalizing(obj)
	stays := len(m.GetFinalizers()) > 0 || finalizing
	if a != nil && !(finalizing && old.Meta.GetDeletionTimestamp() != nil) {
		if err := a.Delete(ctx, old.Object); err != nil {
			return nil, false, err
		}
	}
	if !graceful && !stays {
		if dryRun(o) {
			return old, true, nil
		}
		last, err := r.remove(ctx, old)
		return last, true, err
	}
	switch present := now(); {
	case graceful:
	case !finalizing:
		markDeleting(m, present)
	case m.GetDeletionTimestamp() == nil: // a type with finalizers of its own (Namespace) has no grace period
		m.SetDeletionTimestamp(&present)
	}
	if old.Meta.GetDeletionTimestamp() == nil && r.Definition.PrepareDelete != nil {
		r.Definition.PrepareDelete(ctx, obj)
	}
	marked, err := r.replace(ctx, obj, old, WriteOptions{DryRun: dryRun(o)})
	if grace := m.GetDeletionGracePeriodSeconds(); err != nil || stays || grace != nil && *grace > 0 {
		return marked, false, err
	}
	// A grace period cut to zero: watchers have seen the mark, so the object can go.
	if dryRun(o) {
		return marked, true, nil
	}
	if a != nil { // as in the real server, whose removal is a second step
		if err := a.Delete(ctx, marked.Object); err != nil {
			return nil, false, err
		}
	}
	last, err := r.remove(ctx, marked)
	return last, true, err
}

func dryRun(o metav1.DeleteOptions) bool { return len(o.DryRun) > 0 }

func (r *Resource) checkPreconditions(old *watchcache.Object, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	name, have := old.Meta.GetName(), old.Meta
	if r.Definition.Finalizing != nil {
		return r.checkNamespacePreconditions(have, p)
	}
	conflict := func(format string, args ...any) error {
		gr := schema.GroupResource{Group: r.Definition.GroupVersion.Group, Resource: r.Definition.Kind}
		return apierrors.NewConflict(gr, name, fmt.Errorf(format, args...))
	}
	if p.UID != nil && *p.UID != have.GetUID() {
		return conflict("the UID in the precondition (%s) does not match the UID in record (%s). "+
			"The object might have been deleted and then recreated", *p.UID, have.GetUID())
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != have.GetResourceVersion() {
		return conflict("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record "+
			"(%s). The object might have been modified", *p.ResourceVersion, have.GetResourceVersion())
	}
	return nil
}

// checkNamespacePreconditions checks what the store of namespaces checks itself, with its own messages.
//
// Source: k8s.io/kubernetes pkg/registry/core/namespace/storage/storage.go Delete.
func (r *Resource) checkNamespacePreconditions(have metav1.Object, p *metav1.Preconditions) error {
	const format = "%s: %[2]s in precondition: %[3]v, %[2]s in object meta: %[4]v"
	conflict := func(what string, want, is any) error {
		return apierrors.NewConflict(r.Definition.GroupResource(), have.GetName(),
			fmt.Errorf(format, "Precondition failed", what, want, is))
	}
	if p.UID != nil && *p.UID != have.GetUID() {
		return conflict("UID", *p.UID, have.GetUID())
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != have.GetResourceVersion() {
		return conflict("ResourceVersion", *p.ResourceVersion, have.GetResourceVersion())
	}
	return nil
}

// beginDelete marks obj for a graceful deletion, if its type has one. pending means that there is nothing to do: an
// earlier deletion with a shorter period is under way.
//
// Source: k8s.io/apiserver pkg/registry/rest/delete.go BeforeDelete.
func (r *Resource) beginDelete(obj runtime.Object, m metav1.Object, o *metav1.DeleteOptions) (graceful, pending bool) {
	if r.Definition.Grace == nil {
		return false, false
	}
	if m.GetDeletionTimestamp() != nil {
		return shortenGrace(m, o)
	}
	grace := r.Definition.Grace(obj, o)
	deletion := metav1.NewTime(time.Now().Add(time.Duration(grace) * time.Second)).Rfc3339Copy()
	m.SetDeletionTimestamp(&deletion)
	m.SetDeletionGracePeriodSeconds(&grace)
	if m.GetGeneration() > 0 {
		m.SetGeneration(m.GetGeneration() + 1)
	}
	return true, false
}

// shortenGrace handles a further delete of an object that is being deleted: its grace period can only become shorter.
func shortenGrace(m metav1.Object, o *metav1.DeleteOptions) (graceful, pending bool) {
	current := m.GetDeletionGracePeriodSeconds()
	if current == nil || *current == 0 {
		return false, false
	}
	if o.GracePeriodSeconds == nil || *o.GracePeriodSeconds >= *current {
		return false, true
	}
	period := *o.GracePeriodSeconds
	shift := time.Duration(period-*current) * time.Second
	deletion := metav1.NewTime(m.GetDeletionTimestamp().Add(shift)).Rfc3339Copy()
	if present := now(); deletion.Before(&present) {
		deletion = present
		if period != 0 {
			period = 1
		}
	}
	m.SetDeletionTimestamp(&deletion)
	m.SetDeletionGracePeriodSeconds(&period)
	return true, false
}

// markDeleting marks an object that has finalizers, but no grace period.
func markDeleting(m metav1.Object, present metav1.Time) {
	if m.GetDeletionTimestamp() == nil && m.GetGeneration() > 0 {
		m.SetGeneration(m.GetGeneration() + 1)
	}
	if t := m.GetDeletionTimestamp(); t == nil || t.After(present.Time) {
		m.SetDeletionTimestamp(&present)
	}
	zero := int64(0)
	m.SetDeletionGracePeriodSeconds(&zero)
}

// deletionFinalizers returns obj's finalizers, with the garbage collector's added or removed as the options ask.
//
// Source: k8s.io/apiserver pkg/registry/generic/registry/store.go deletionFinalizersForGarbageCollection.
func (r *Resource) deletionFinalizers(m metav1.Object, o metav1.DeleteOptions) []string {
	if f := r.Definition.DeletionFinalizer; f != "" && m.GetDeletionTimestamp() == nil {
		return append(slices.DeleteFunc(slices.Clone(m.GetFinalizers()), func(have string) bool { return have == f }),
			f)
	}
	policy := r.propagation(m, o)
	finalizers := slices.DeleteFunc(slices.Clone(m.GetFinalizers()), func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	switch policy {
	case metav1.DeletePropagationOrphan:
		finalizers = append(finalizers, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationForeground:
		finalizers = append(finalizers, metav1.FinalizerDeleteDependents)
	}
	return finalizers
}

// OrphanDependents returns the old form of a propagation policy, which clients still send.
func OrphanDependents(o metav1.DeleteOptions) *bool {
	//lint:ignore SA1019 clients may still send it
	return o.OrphanDependents
}

// propagation returns the propagation policy. It looks, in this order, at the options, the finalizers that the object
// has, and the type's default.
func (r *Resource) propagation(m metav1.Object, o metav1.DeleteOptions) metav1.DeletionPropagation {
	switch orphan := OrphanDependents(o); {
	case orphan != nil && *orphan:
		return metav1.DeletePropagationOrphan
	case orphan != nil:
		return metav1.DeletePropagationBackground
	case o.PropagationPolicy != nil:
		return *o.PropagationPolicy
	}
	for _, f := range m.GetFinalizers() {
		switch f {
		case metav1.FinalizerOrphanDependents:
			return metav1.DeletePropagationOrphan
		case metav1.FinalizerDeleteDependents:
			return metav1.DeletePropagationForeground
		}
	}
	return r.Definition.DefaultPropagation
}

// DeleteCollection deletes every object that a list with the given options returns. a may be nil.
func (r *Resource) DeleteCollection(ctx context.Context, o metav1.DeleteOptions, list ListOptions,
	a Admission,
) (ListResult, error) {
	if v := list.ResourceVersion; v != "" && v != "0" && list.ResourceVersionMatch == "" {
		// A list as of a version is paged, and the real server reads in pages here.
		list.ResourceVersionMatch = metav1.ResourceVersionMatchExact
	}
	result, err := r.List(ctx, list)
	if err != nil {
		return ListResult{}, err
	}
	for _, obj := range result.Objects {
		if _, _, err := r.Delete(ctx, obj.Meta.GetNamespace(), obj.Meta.GetName(), o, a); err != nil &&
			!apierrors.IsNotFound(err) {
			return ListResult{}, err
		}
	}
	return result, nil
}
