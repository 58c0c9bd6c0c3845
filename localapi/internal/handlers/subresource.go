package handlers

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/localapi/internal/registry"
	"github.com/flyball-dev/flyball/localapi/resource"
)

// subresource performs an operation below an object.
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
		return answer{}, errNoSuchPath
	}
	if !slices.Contains(sub.Verbs, x.info.Verb) {
		return answer{}, x.notAllowed()
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

// project is the subresource's view of an object, with its kind set.
func project(ctx context.Context, sub resource.Subresource, obj runtime.Object) (runtime.Object, error) {
	view, err := sub.Project(ctx, obj)
	if err != nil {
		return nil, err
	}
	view.GetObjectKind().SetGroupVersionKind(sub.Kind)
	return view, nil
}

func (x *exchange) getSubresource(ctx context.Context, sub resource.Subresource) (answer, error) {
	o, err := x.res.Get(x.info.Namespace, x.info.Name, "")
	if err != nil {
		return answer{}, err
	}
	view, err := project(ctx, sub, o.Object)
	if err != nil {
		return answer{}, err
	}
	return otherAnswer(http.StatusOK, view), nil
}

// createSubresource performs an action (binding, eviction).
func (x *exchange) createSubresource(ctx context.Context, sub resource.Subresource) (answer, error) {
	o, err := x.writeOptions("CreateOptions")
	if err != nil {
		return answer{}, err
	}
	sent, err := x.decode(sub.Kind, sub.New())
	if err != nil {
		return answer{}, err
	}
	if m, err := meta.Accessor(sent); err == nil && m.GetName() != "" && m.GetName() != x.info.Name {
		return answer{}, apierrors.NewBadRequest("name in URL does not match name in " + sub.Kind.Kind + " object")
	}
	if sub.Delete != nil {
		return x.deleteBySubresource(ctx, sub, sent, o)
	}
	_, _, err = x.res.Update(ctx, x.info.Namespace, x.info.Name, x.merge(ctx, sub, o, func(runtime.Object) (runtime.Object, error) {
		return sent, nil
	}))
	if err != nil {
		return answer{}, err
	}
	return otherAnswer(http.StatusCreated, success(http.StatusCreated)), nil
}

func (x *exchange) deleteBySubresource(ctx context.Context, sub resource.Subresource, sent runtime.Object, o registry.WriteOptions) (answer, error) {
	current, err := x.res.Get(x.info.Namespace, x.info.Name, "")
	if err != nil {
		return answer{}, err
	}
	options, err := sub.Delete(ctx, current.Object, sent)
	if err != nil {
		return answer{}, err
	}
	if o.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if _, _, err := x.res.Delete(ctx, x.info.Namespace, x.info.Name, *options); err != nil {
		return answer{}, err
	}
	return otherAnswer(http.StatusCreated, success(http.StatusCreated)), nil
}

func success(code int32) *metav1.Status {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Code: code}
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
	m, err := meta.Accessor(sent)
	if err != nil {
		return answer{}, err
	}
	if err := x.checkName(m); err != nil {
		return answer{}, err
	}
	return x.storeView(ctx, sub, x.merge(ctx, sub, o, func(runtime.Object) (runtime.Object, error) { return sent, nil }))
}

func (x *exchange) patchSubresource(ctx context.Context, sub resource.Subresource) (answer, error) {
	patchType, err := x.patchType(sub.New())
	if err != nil {
		return answer{}, err
	}
	if patchType == types.ApplyYAMLPatchType {
		// Forced apply and merging are the same for views without lists, which all of ours are.
		if x.body, err = yaml.YAMLToJSON(x.body); err != nil {
			return answer{}, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
		}
		patchType = types.MergePatchType
	}
	o, _, err := x.patchOptions(patchType)
	if err != nil {
		return answer{}, err
	}
	return x.storeView(ctx, sub, x.merge(ctx, sub, o, func(old runtime.Object) (runtime.Object, error) {
		view, err := project(ctx, sub, old)
		if err != nil {
			return nil, err
		}
		return x.patched(patchType, view, sub.New())
	}))
}

// merge is the change that writes the view, computed from the current object, into it.
func (x *exchange) merge(ctx context.Context, sub resource.Subresource, o registry.WriteOptions, view func(old runtime.Object) (runtime.Object, error)) registry.Change {
	return registry.Change{Part: registry.Subresource, Validate: sub.Validate, WriteOptions: o, Next: func(old runtime.Object) (runtime.Object, error) {
		v, err := view(old)
		if err != nil {
			return nil, err
		}
		obj := old.DeepCopyObject()
		if m, err := meta.Accessor(v); err == nil && m.GetResourceVersion() != "" {
			target, err := meta.Accessor(obj)
			if err != nil {
				return nil, err
			}
			target.SetResourceVersion(m.GetResourceVersion())
		}
		if err := sub.Merge(ctx, obj, v); err != nil {
			return nil, err
		}
		return x.api.Managers.Update(x.res, x.info.Subresource, old, obj, o.Manager)
	}}
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
