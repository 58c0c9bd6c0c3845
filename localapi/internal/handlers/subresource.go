package handlers

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/flyball-dev/flyball/localapi/internal/admission"
	"github.com/flyball-dev/flyball/localapi/internal/registry"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// subresource performs an operation on a subresource.
func (x *exchange) subresource(ctx context.Context) (answer, error) {
	if x.info.Subresource == "status" && x.res.Definition.HasStatus {
		switch x.info.Verb {
		case "get":
			return x.get(ctx)
		case "update":
			return x.update(ctx, registry.Status)
		case "patch":
			return x.patch(ctx, registry.Status)
		}
		return answer{}, x.notAllowed()
	}
	sub, ok := x.res.Definition.Subresources[x.info.Subresource]
	if !ok {
		return answer{}, x.notServed()
	}
	if !slices.Contains(sub.Verbs, x.info.Verb) {
		return answer{}, x.notAllowed()
	}
	if sub.Connect != nil {
		return x.connect(ctx, sub)
	}
	switch x.info.Verb {
	case "get":
		return x.getSubresource(ctx, sub)
	case "create":
		return x.createSubresource(ctx, sub)
	case "update":
		return x.updateSubresource(ctx, sub)
	default:
		return x.patchSubresource(ctx, sub)
	}
}

// project returns the subresource's view of an object, with its kind set. The caller owns the view; obj does not
// change.
func project(ctx context.Context, sub resource.Subresource, obj runtime.Object) (runtime.Object, error) {
	view, err := sub.Project(ctx, obj)
	if err != nil {
		return nil, err
	}
	if view == obj {
		view = obj.DeepCopyObject()
	}
	view.GetObjectKind().SetGroupVersionKind(sub.Kind)
	return view, nil
}

func (x *exchange) getSubresource(ctx context.Context, sub resource.Subresource) (answer, error) {
	if err := x.refuseExport(); err != nil {
		return answer{}, err
	}
	o, err := x.res.Get(ctx, x.info.Namespace, x.info.Name, "")
	if err != nil {
		return answer{}, err
	}
	view, err := project(ctx, sub, o.Object)
	if err != nil {
		return answer{}, err
	}
	return otherAnswer(http.StatusOK, view), nil
}

// connect rejects a connection to an existing object. The name may have a scheme before it and a port after it.
func (x *exchange) connect(ctx context.Context, sub resource.Subresource) (answer, error) {
	if err := x.admitConnection(ctx, sub); err != nil {
		return answer{}, err
	}
	if sub.ConnectNeedsCreate {
		if err := x.alsoMay("create", ""); err != nil {
			return answer{}, err
		}
	}
	name := x.info.Name
	if _, plain, _, ok := utilnet.SplitSchemeNamePort(name); ok {
		name = plain
	}
	o, err := x.res.Get(ctx, x.info.Namespace, name, "")
	if err != nil {
		return answer{}, err
	}
	return answer{}, sub.Connect(o.Object)
}

// answerSubresource answers a question about an object.
func (x *exchange) answerSubresource(ctx context.Context, sub resource.Subresource,
	sent runtime.Object,
) (answer, error) {
	o, err := x.res.Get(ctx, x.info.Namespace, x.info.Name, "")
	if err != nil {
		return answer{}, err
	}
	result, err := sub.Answer(ctx, o.Object, sent)
	if err != nil {
		return answer{}, err
	}
	result.GetObjectKind().SetGroupVersionKind(sub.Kind)
	return otherAnswer(http.StatusCreated, result), nil
}

// createNamed performs the create of the subresource that the type stands for (bindings), of the object that the body
// names. Admission plugins see the type itself.
func (x *exchange) createNamed(ctx context.Context) (answer, error) {
	d := x.res.Definition
	sent, err := x.decode(d.GroupVersionKind(), x.res.New())
	if err != nil {
		return answer{}, err
	}
	m := resource.Meta(sent)
	if m.GetName() == "" {
		return answer{}, apierrors.NewBadRequest("Name parameter required.")
	}
	x.sentName = m.GetName()
	o, err := x.writeOptions("CreateOptions")
	if err != nil {
		return answer{}, err
	}
	x.info.Name = m.GetName()
	x.info.Resource, x.info.Subresource, _ = strings.Cut(d.Creates, "/")
	x.res = x.api.Resource(d.GroupVersion.WithResource(x.info.Resource))
	return x.performSubresource(ctx, x.res.Definition.Subresources[x.info.Subresource], o)
}

// createSubresource performs an action (binding, eviction).
func (x *exchange) createSubresource(ctx context.Context, sub resource.Subresource) (answer, error) {
	o, err := x.writeOptions("CreateOptions")
	if err != nil {
		return answer{}, err
	}
	return x.performSubresource(ctx, sub, o)
}

// performSubresource performs an action with the options of a create.
func (x *exchange) performSubresource(ctx context.Context, sub resource.Subresource, o registry.WriteOptions,
) (answer, error) {
	sent, err := x.decode(sub.Kind, sub.New())
	if err != nil {
		return answer{}, err
	}
	if m := resource.Meta(sent); m.GetNamespace() == "" {
		m.SetNamespace(x.info.Namespace)
	}
	admission := o.Admission
	o.Admission = nil // the write that follows is a part of what has been admitted
	if admission != nil {
		if sent, err = admission.Mutate(ctx, sent, nil); err != nil {
			return answer{}, err
		}
	}
	if name := resource.Meta(sent).GetName(); sub.Answer == nil && name != "" && name != x.info.Name {
		return answer{}, apierrors.NewBadRequest("name in URL does not match name in " + sub.Kind.Kind + " object")
	}
	if admission != nil {
		if err := admission.Validate(ctx, sent, nil); err != nil {
			return answer{}, err
		}
	}
	if sub.Answer != nil {
		return x.answerSubresource(ctx, sub, sent)
	}
	if sub.Delete != nil {
		return x.deleteBySubresource(ctx, sub, sent, o)
	}
	_, _, err = x.res.Update(ctx, x.info.Namespace, x.info.Name,
		x.merge(ctx, sub, o, func(runtime.Object) (runtime.Object, error) { return sent, nil }))
	if err != nil {
		return answer{}, err
	}
	return otherAnswer(http.StatusCreated, success(http.StatusCreated)), nil
}

func success(code int32) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Code: code,
	}
}

func (x *exchange) updateSubresource(ctx context.Context, sub resource.Subresource) (answer, error) {
	o, err := x.writeOptions("UpdateOptions")
	if err != nil {
		return answer{}, err
	}
	sent, err := x.decode(sub.Kind, sub.New())
	if err != nil {
		return answer{}, err
	}
	if err := x.checkName(resource.Meta(sent)); err != nil {
		return answer{}, err
	}
	return x.storeView(ctx, sub, x.merge(ctx, sub, o, func(old runtime.Object) (runtime.Object, error) {
		return x.managedView(ctx, sub, old, sent.DeepCopyObject(), o.Manager)
	}))
}

func (x *exchange) patchSubresource(ctx context.Context, sub resource.Subresource) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patchTimeout)
	defer cancel()
	patchType, err := x.patchType(sub.New())
	if err != nil {
		return answer{}, err
	}
	o, force, err := x.patchOptions(patchType)
	if err != nil {
		return answer{}, err
	}
	if patchType == types.ApplyYAMLPatchType {
		return x.applySubresource(ctx, sub, o, force)
	}
	return x.storeView(ctx, sub, x.merge(ctx, sub, o, func(old runtime.Object) (runtime.Object, error) {
		obj, err := x.patched(ctx, patchType, old, sub.New())
		if err != nil {
			return nil, err
		}
		return x.managedView(ctx, sub, old, obj, o.Manager)
	}))
}

// applySubresource performs a server-side apply on a view.
func (x *exchange) applySubresource(ctx context.Context, sub resource.Subresource, o registry.WriteOptions,
	force bool,
) (answer, error) {
	applied, err := x.appliedConfiguration()
	if err != nil {
		return answer{}, err
	}
	if applied.GroupVersionKind() != sub.Kind {
		return answer{}, apierrors.NewBadRequest(fmt.Sprintf("invalid object type: %s", applied.GroupVersionKind()))
	}
	as := x.res.Written(x.info.Subresource)
	if sub.Replicas != nil {
		as = registry.WrittenView(x.info.Subresource, sub)
	}
	return x.storeView(ctx, sub, x.merge(ctx, sub, o, func(old runtime.Object) (runtime.Object, error) {
		return x.api.Managers.Apply(ctx, as, old,
			registry.Application{Configuration: applied.DeepCopy(), Manager: o.Manager, Force: force})
	}))
}

// managedView sets the managed fields of a view that replaces old. Like the real server, it computes them from what the
// client sent, before Merge takes over the fields that may be written.
func (x *exchange) managedView(ctx context.Context, sub resource.Subresource, old, view runtime.Object,
	manager string,
) (runtime.Object, error) {
	as := x.res.Written(x.info.Subresource)
	if sub.Replicas != nil {
		as = registry.WrittenView(x.info.Subresource, sub)
	} else {
		x.applyDefaults(view) // the object itself
	}
	return x.api.Managers.Update(ctx, as, old, view, manager)
}

// merge returns the change that writes a view into the object. next computes the view from the current one.
func (x *exchange) merge(ctx context.Context, sub resource.Subresource, o registry.WriteOptions,
	next func(old runtime.Object) (runtime.Object, error),
) registry.Change {
	review, admits := o.Admission.(*admission.Review)
	if admits {
		o.Admission = admission.View{Review: review, Project: func(ctx context.Context,
			obj runtime.Object,
		) (runtime.Object, error) {
			return project(ctx, sub, obj)
		}}
	}
	return registry.Change{
		Part: registry.Subresource, Validate: sub.Validate, WriteOptions: o,
		Next: func(old runtime.Object) (runtime.Object, error) {
			obj := old.DeepCopyObject()
			m := resource.Meta(obj)
			managers := registry.NewViewManagers(x.res, sub, m)
			current, err := currentView(ctx, sub, old, managers)
			if err != nil {
				return nil, err
			}
			view, err := next(current)
			if err == nil && admits {
				view, err = review.Mutate(ctx, view, current)
			}
			if err != nil {
				return nil, err
			}
			sent := resource.Meta(view)
			if sent.GetResourceVersion() != "" {
				m.SetResourceVersion(sent.GetResourceVersion())
			}
			if err := sub.Merge(ctx, obj, view); err != nil {
				return nil, err
			}
			if sub.Unmanaged {
				return obj, nil
			}
			return obj, managers.Take(m, sent)
		},
	}
}

// currentView returns the view before a change, with managed fields, or nil if the subresource has none.
func currentView(ctx context.Context, sub resource.Subresource, obj runtime.Object,
	managers *registry.ViewManagers,
) (runtime.Object, error) {
	if sub.Project == nil {
		return nil, nil
	}
	view, err := project(ctx, sub, obj)
	if err != nil {
		return nil, err
	}
	return view, managers.Give(resource.Meta(view))
}

// storeView performs a change and answers with the subresource's view of the result.
func (x *exchange) storeView(ctx context.Context, sub resource.Subresource, c registry.Change) (answer, error) {
	obj, _, err := x.res.Update(ctx, x.info.Namespace, x.info.Name, c)
	if err != nil {
		return answer{}, err
	}
	view, err := project(ctx, sub, obj.Object)
	if err != nil {
		return answer{}, err
	}
	return otherAnswer(http.StatusOK, view), nil
}
