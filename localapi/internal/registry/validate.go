package registry

import (
	"context"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/watchcache"
	"github.com/flyball-dev/flyball/localapi/storage"
)

func (r *Resource) validateName() validation.ValidateNameFunc {
	if r.Definition.ValidateName != nil {
		return r.Definition.ValidateName
	}
	return validation.NameIsDNSSubdomain
}

func (r *Resource) validateCreate(ctx context.Context, obj runtime.Object, m metav1.Object, o WriteOptions) error {
	d := r.Definition
	errs := validation.ValidateObjectMetaAccessor(m, d.Namespaced, r.validateName(), field.NewPath("metadata"))
	errs = append(errs, r.unqualifiedFinalizers(m)...)
	for _, validate := range []func(runtime.Object) field.ErrorList{d.Validate, d.ValidateCreate} {
		if validate != nil {
			errs = append(errs, validate(obj)...)
		}
	}
	if d.ValidateRules != nil {
		errs = append(errs, d.ValidateRules(ctx, obj, nil, errs, o.Warn)...)
	}
	if len(errs) == 0 {
		errs = pathSegment(m)
	}
	return r.invalid(m.GetName(), errs)
}

// validateUpdate validates obj, with the metadata m, as the successor of old.
func (r *Resource) validateUpdate(ctx context.Context, obj runtime.Object, m metav1.Object, old *watchcache.Object,
	c Change,
) error {
	d := r.Definition
	// The name was validated at creation and cannot change, so only the rest of the metadata is validated.
	anyName := func(string, bool) []string { return nil }
	errs := validation.ValidateObjectMetaAccessor(m, d.Namespaced, anyName, field.NewPath("metadata"))
	errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(m, old.Meta, field.NewPath("metadata"))...)
	validate, validateUpdate := d.Validate, d.ValidateUpdate
	switch {
	case c.Validate != nil:
		validate, validateUpdate = nil, c.Validate
	case c.Part == Status:
		validate, validateUpdate = nil, d.ValidateStatusUpdate
	}
	if validate != nil {
		errs = append(errs, validate(obj)...)
	}
	if validateUpdate != nil {
		errs = append(errs, validateUpdate(obj, old.Object)...)
	}
	if d.ValidateRules != nil {
		errs = append(errs, d.ValidateRules(ctx, obj, old.Object, errs, c.Warn)...)
	}
	return r.invalid(m.GetName(), errs)
}

func (r *Resource) invalid(name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(r.Definition.GroupKind(), name, errs)
}

// unqualifiedFinalizers rejects finalizers without a domain, except those that Kubernetes itself has.
//
// Source: k8s.io/kubernetes pkg/apis/core/validation ValidateFinalizerName.
func (r *Resource) unqualifiedFinalizers(m metav1.Object) (errs field.ErrorList) {
	if r.Unstructured {
		return nil // custom resources may have them
	}
	for i, f := range m.GetFinalizers() {
		standard := f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents ||
			f == string(corev1.FinalizerKubernetes)
		if !standard && len(strings.Split(f, "/")) == 1 {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "finalizers").Index(i), f,
				"name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// pathSegment rejects names that cannot be part of a URL or a storage key.
func pathSegment(m metav1.Object) (errs field.ErrorList) {
	for _, problem := range content.IsPathSegmentName(m.GetName()) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), m.GetName(), problem))
	}
	return errs
}

func (r *Resource) warn(obj, old runtime.Object, o WriteOptions) {
	if r.Definition.Warnings == nil {
		return
	}
	for _, w := range r.Definition.Warnings(obj, old) {
		o.Warn(w)
	}
}

// allocate reserves what the definition asks for. done is never nil.
func (r *Resource) allocate(ctx context.Context, obj, old runtime.Object) (done func(bool), err error) {
	nothing := func(bool) {}
	if r.Definition.Allocate == nil {
		return nothing, nil
	}
	if err := r.allocated.do(func() error { return r.allocateStored(ctx) }); err != nil {
		return nothing, err
	}
	done, err = r.Definition.Allocate(ctx, r.env.Allocator, obj, old)
	if done == nil {
		done = nothing
	}
	return done, err
}

// allocateStored reserves what the objects of a reopened store hold.
func (r *Resource) allocateStored(ctx context.Context) error {
	page, err := r.env.Store.List(ctx, r.key("", "").Prefix(), storage.ListOptions{})
	if err != nil {
		return err
	}
	for _, record := range page.Records {
		obj, err := r.decode(record)
		if err != nil {
			return err
		}
		done, err := r.Definition.Allocate(ctx, r.env.Allocator, obj, nil)
		if err != nil {
			return err
		}
		if done != nil {
			done(true)
		}
	}
	return nil
}

// release frees what a removed object held.
func (r *Resource) release(ctx context.Context, old runtime.Object) error {
	if r.Definition.Allocate == nil {
		return nil
	}
	done, err := r.allocate(ctx, nil, old)
	done(err == nil)
	return err
}

// onceSuccessful runs a function until it has succeeded once.
type onceSuccessful struct {
	mu   sync.Mutex
	done bool
}

func (o *onceSuccessful) do(f func() error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		return nil
	}
	err := f()
	o.done = err == nil
	return err
}
