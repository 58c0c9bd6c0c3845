package admission

import (
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// Plugin is one step of a [Chain]. Its methods may be called concurrently, for different requests. Errors are API
// status errors, which the client gets; they refuse the write.
type Plugin interface {
	// Idle reports whether the plugin would do nothing for any request. It is called for every write, and is cheap.
	Idle() bool

	// Mutate may replace a.Object.
	Mutate(ctx context.Context, a *Attributes) error

	// Validate accepts the write or refuses it.
	Validate(ctx context.Context, a *Attributes) error
}

// Chain is a list of plugins, in their order.
type Chain []Plugin

// Idle reports whether no plugin would do anything.
func (c Chain) Idle() bool { return !slices.ContainsFunc(c, func(p Plugin) bool { return !p.Idle() }) }

// mutate lets all plugins mutate, once or twice.
func (c Chain) mutate(ctx context.Context, a *Attributes) error {
	for {
		for _, p := range c {
			if err := p.Mutate(ctx, a); err != nil {
				return err
			}
		}
		if a.again || !a.wanted {
			return nil
		}
		a.again = true
	}
}

func (c Chain) validate(ctx context.Context, a *Attributes) error {
	for _, p := range c {
		if err := p.Validate(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// Review is the admission of one request.
type Review struct {
	Chain Chain

	// Request is what all writes of the request have in common. Operation, Object, OldObject and Options are not set.
	Request Attributes

	// Options are the options of a create, update or patch, in the form of an update's. Deletion are those of a delete.
	Options  metav1.UpdateOptions
	Deletion *metav1.DeleteOptions
}

// Mutate returns the object to store in place of obj. It is the replacement of old, or new if old is nil.
func (r *Review) Mutate(ctx context.Context, obj, old runtime.Object) (runtime.Object, error) {
	a := r.attributes(obj, old)
	m, err := meta.Accessor(obj)
	if err != nil { // some objects, like options, have no metadata
		err = r.Chain.mutate(ctx, a)
		return a.Object, err
	}
	before := m.GetManagedFields()
	if err := r.Chain.mutate(ctx, a); err != nil {
		return nil, err
	}
	if m, err = meta.Accessor(a.Object); err != nil {
		return nil, err
	}
	if err := managedfields.ValidateManagedFields(m.GetManagedFields()); err != nil {
		m.SetManagedFields(before)
		a.Warn(fmt.Sprintf(".metadata.managedFields was in an invalid state after admission; this could be caused by "+
			"an outdated mutating admission controller; please fix your requests: %v", err))
	}
	return a.Object, nil
}

// Validate checks obj, which is about to replace old, or to be created if old is nil.
func (r *Review) Validate(ctx context.Context, obj, old runtime.Object) error {
	a := r.attributes(obj, old)
	if m, err := meta.Accessor(obj); err == nil && a.Name == "" {
		a.Name = m.GetName() // by now it has been generated
	}
	return r.Chain.validate(ctx, a)
}

// Delete checks that old may be deleted.
func (r *Review) Delete(ctx context.Context, old runtime.Object) error {
	a := r.Request
	a.Operation, a.OldObject, a.Options = admissionv1.Delete, old, r.Deletion
	if err := r.Chain.mutate(ctx, &a); err != nil {
		return err
	}
	a = r.Request
	a.Operation, a.OldObject, a.Options = admissionv1.Delete, old, r.Deletion
	return r.Chain.validate(ctx, &a)
}

// Connect checks a connection with the given options.
func (r *Review) Connect(ctx context.Context, options runtime.Object) error {
	a := r.Request
	a.Operation, a.Object = admissionv1.Connect, options
	if err := r.Chain.mutate(ctx, &a); err != nil {
		return err
	}
	a = r.Request
	a.Operation, a.Object = admissionv1.Connect, options
	return r.Chain.validate(ctx, &a)
}

func (r *Review) attributes(obj, old runtime.Object) *Attributes {
	a, o := r.Request, r.Options
	a.Operation, a.Object, a.OldObject = admissionv1.Update, obj, old
	if old != nil {
		o.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("UpdateOptions"))
		a.Options = &o
		return &a
	}
	create := metav1.CreateOptions(o)
	create.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("CreateOptions"))
	a.Operation, a.Options = admissionv1.Create, &create
	return &a
}

// View is the admission of a write through a subresource whose objects are views of the stored ones (Scale). Such a
// write is mutated as a view, before the view is merged into the object, so Mutate does nothing.
type View struct {
	*Review

	// Project returns the view of a stored object.
	Project func(ctx context.Context, obj runtime.Object) (runtime.Object, error)
}

// Mutate returns obj.
func (v View) Mutate(_ context.Context, obj, _ runtime.Object) (runtime.Object, error) {
	return obj, nil
}

// Validate checks the views of obj and old.
func (v View) Validate(ctx context.Context, obj, old runtime.Object) error {
	view, err := v.Project(ctx, obj)
	if err != nil {
		return err
	}
	before, err := v.Project(ctx, old)
	if err != nil {
		return err
	}
	return v.Review.Validate(ctx, view, before)
}
