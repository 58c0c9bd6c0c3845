package handlers

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/registry"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// deletionAttempts is how often a deletion is decided again because the object has changed since it was decided.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/pod/storage/eviction.go EvictionsRetry.
const deletionAttempts = 20

// deleteBySubresource deletes the object if the subresource allows it.
func (x *exchange) deleteBySubresource(ctx context.Context, sub resource.Subresource, sent runtime.Object,
	o registry.WriteOptions,
) (answer, error) {
	var err error
	for range deletionAttempts {
		var again bool
		if again, err = x.tryDelete(ctx, sub, sent, o); err == nil {
			return otherAnswer(http.StatusCreated, success(http.StatusCreated)), nil
		}
		if !again {
			break
		}
	}
	return answer{}, err
}

// tryDelete decides and deletes once. again means that the object changed after the decision.
func (x *exchange) tryDelete(ctx context.Context, sub resource.Subresource, sent runtime.Object,
	o registry.WriteOptions,
) (again bool, err error) {
	current, err := x.res.Get(ctx, x.info.Namespace, x.info.Name, "")
	if err != nil {
		return false, err
	}
	body := sent.DeepCopyObject()
	options, again, err := sub.Delete(ctx,
		resource.Deletion{Object: current.Object, Body: body, DryRun: o.DryRun, Others: others{x.api}})
	if err != nil {
		return false, err
	}
	if o.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if sub.Merge != nil && len(options.DryRun) == 0 {
		marked, _, err := x.res.Update(ctx, x.info.Namespace, x.info.Name,
			x.merge(ctx, sub, o, func(runtime.Object) (runtime.Object, error) { return body, nil }))
		if err != nil {
			return again && apierrors.IsConflict(err), err
		}
		if p := options.Preconditions; p != nil && p.ResourceVersion != nil {
			// The client's precondition was about the version before the mark.
			p.ResourceVersion = ptr.To(marked.Meta.GetResourceVersion())
		}
	}
	_, _, err = x.res.Delete(ctx, x.info.Namespace, x.info.Name, *options, nil)
	return again && apierrors.IsConflict(err), err
}

// others gives the rules of a type access to the objects that the API serves.
type others struct{ api *API }

// Others gives the server's own parts access to the objects that the API serves.
func (a *API) Others() resource.Others { return others{a} }

// serverManager owns the fields that the server itself writes.
const serverManager = "kube-apiserver"

// List implements [resource.Others].
func (o others) List(ctx context.Context, gvr schema.GroupVersionResource, namespace string) ([]runtime.Object, error) {
	res := o.api.Resource(gvr)
	if res == nil {
		return nil, nil
	}
	list, err := res.List(ctx, registry.ListOptions{Selection: registry.Selection{Namespace: namespace}})
	if err != nil {
		return nil, err
	}
	objects := make([]runtime.Object, len(list.Objects))
	for i, found := range list.Objects {
		objects[i] = found.Object
	}
	return objects, nil
}

// UpdateStatus implements [resource.Others].
func (o others) UpdateStatus(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string,
	change func(runtime.Object) error,
) error {
	res := o.api.Resource(gvr)
	if res == nil {
		return apierrors.NewNotFound(gvr.GroupResource(), name)
	}
	_, _, err := res.Update(ctx, namespace, name, registry.Change{
		Part: registry.Status, WriteOptions: registry.WriteOptions{Manager: serverManager, Warn: func(string) {}},
		Next: func(old runtime.Object) (runtime.Object, error) {
			obj := old.DeepCopyObject()
			if err := change(obj); err != nil {
				return nil, err
			}
			return o.api.Managers.Update(ctx, res.Written("status"), old, obj, serverManager)
		},
	})
	return err
}
