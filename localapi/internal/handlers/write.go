package handlers

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/registry"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/watchcache"
)

func (x *exchange) create(ctx context.Context) (answer, error) {
	d := x.res.Definition
	o, err := x.writeOptions("CreateOptions")
	if err != nil {
		return answer{}, err
	}
	obj, err := x.decode(d.GroupVersionKind(), x.res.New())
	if err != nil {
		return answer{}, err
	}
	x.sentName = resource.Meta(obj).GetName()
	o = named(o, x.sentName, d)
	x.applyDefaults(obj)
	created, err := x.res.Create(ctx, x.info.Namespace, obj, o)
	if err != nil {
		return answer{}, err
	}
	return objectAnswer(http.StatusCreated, created), nil
}

func (x *exchange) applyDefaults(obj runtime.Object) {
	if x.res.Definition.Default != nil {
		x.res.Definition.Default(obj)
	}
}

// update handles a PUT of the object or of its status.
func (x *exchange) update(ctx context.Context, part registry.Part) (answer, error) {
	d := x.res.Definition
	o, err := x.writeOptions("UpdateOptions")
	if err != nil {
		return answer{}, err
	}
	sent, err := x.decode(d.GroupVersionKind(), x.res.New())
	if err != nil {
		return answer{}, err
	}
	m := resource.Meta(sent)
	if err := x.checkName(m); err != nil {
		return answer{}, err
	}
	registry.DedupOwnerReferences(m, x.warn)
	x.applyDefaults(sent)
	change := registry.Change{
		Part: part, UID: m.GetUID(), AllowCreate: d.CreateOnUpdate && part == registry.Main,
		WriteOptions: o,
	}
	change.Next = func(old runtime.Object) (runtime.Object, error) {
		if old == nil {
			old = x.res.New()
		}
		obj := sent.DeepCopyObject() // another attempt may follow
		return x.api.Managers.Update(ctx, x.res.Written(subresourceOf(part)), old, obj, o.Manager)
	}
	return x.change(ctx, change)
}

// change performs a change of the named object.
func (x *exchange) change(ctx context.Context, c registry.Change) (answer, error) {
	obj, created, err := x.res.Update(ctx, x.info.Namespace, x.info.Name, c)
	if err != nil {
		return answer{}, err
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	return objectAnswer(code, obj), nil
}

func subresourceOf(part registry.Part) string {
	if part == registry.Status {
		return "status"
	}
	return ""
}

// checkName compares a body's metadata with the path.
//
// Source: k8s.io/apiserver pkg/endpoints/handlers/rest.go checkName, pkg/registry/rest/meta.go.
func (x *exchange) checkName(m metav1.Object) error {
	switch name, namespace := m.GetName(), m.GetNamespace(); {
	case namespace != "" && namespace != x.info.Namespace && x.res.Definition.Namespaced:
		return apierrors.NewBadRequest(
			"the namespace of the provided object does not match the namespace sent on the request",
		)
	case name == "":
		return apierrors.NewBadRequest(
			fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided",
				x.info.Name),
		)
	case name != x.info.Name:
		return apierrors.NewBadRequest(
			fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, x.info.Name),
		)
	}
	return nil
}

func (x *exchange) delete(ctx context.Context) (answer, error) {
	o, err := x.deleteOptions()
	if err != nil {
		return answer{}, err
	}
	if ignoresReadErrors(o) {
		if err := x.mayDeleteUnsafely(); err != nil {
			return answer{}, err
		}
	}
	d := x.res.Definition
	x.warnOfDelete(&o)
	last, removed, err := x.res.Delete(ctx, x.info.Namespace, x.info.Name, o, x.deleting(o))
	if err != nil {
		return answer{}, err
	}
	code := http.StatusOK
	if orphan := registry.OrphanDependents(o); !removed && orphan != nil && !*orphan {
		code = http.StatusAccepted
	}
	if !removed || d.DeleteReturnsObject {
		return objectAnswer(code, last), nil
	}
	return answer{code: code, other: deletedStatus(x.res, last), resourceVersion: last.Meta.GetResourceVersion()}, nil
}

// ignoresReadErrors reports whether a delete asks to remove objects that cannot be read.
func ignoresReadErrors(o metav1.DeleteOptions) bool {
	return ptr.Deref(o.IgnoreStoreReadErrorWithClusterBreakingPotential, false)
}

// warnOfDelete sends the type's warnings about deleting with these options.
func (x *exchange) warnOfDelete(o *metav1.DeleteOptions) {
	if x.res.Definition.DeleteWarnings == nil {
		return
	}
	for _, w := range x.res.Definition.DeleteWarnings(o) {
		x.warn(w)
	}
}

// deletedStatus returns the answer to a delete of most types.
//
// Source: k8s.io/apiserver pkg/registry/generic/registry/store.go finalizeDelete.
func deletedStatus(res *registry.Resource, last *watchcache.Object) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name: last.Meta.GetName(), Group: res.Definition.GroupVersion.Group, Kind: res.Definition.Plural,
			UID: last.Meta.GetUID(),
		},
	}
}

func (x *exchange) deleteCollection(ctx context.Context) (answer, error) {
	list, err := x.registryListOptions()
	if err != nil {
		return answer{}, err
	}
	o, err := x.deleteOptions()
	if err != nil {
		return answer{}, err
	}
	if ignoresReadErrors(o) {
		return answer{}, invalidOptions("DeleteOptions", field.ErrorList{field.Invalid(
			field.NewPath("ignoreStoreReadErrorWithClusterBreakingPotential"), true,
			"is not allowed with DELETECOLLECTION, try again after removing the option")})
	}
	x.warnOfDelete(&o)
	result, err := x.res.DeleteCollection(ctx, o, list, x.deleting(o))
	if err != nil {
		return answer{}, err
	}
	return x.listAnswer(result), nil
}
