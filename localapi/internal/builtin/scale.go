package builtin

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// scalable is the part of a workload that the scale subresource shows.
type scalable struct {
	meta     *metav1.ObjectMeta
	replicas **int32 // spec.replicas
	current  int32   // status.replicas
	selector *metav1.LabelSelector
}

// withScale makes scale the only subresource of a kind. view reads an object. A write sets the number of replicas, and
// increments the generation if the number changes.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/apps/deployment/storage/storage.go ScaleREST.
func withScale[T runtime.Object](d *resource.Definition, view func(T) scalable) {
	d.Subresources = map[string]resource.Subresource{"scale": {
		Kind:  autoscalingv1.SchemeGroupVersion.WithKind("Scale"),
		New:   func() runtime.Object { return &autoscalingv1.Scale{} },
		Verbs: []string{"get", "patch", "update"},

		Replicas: fieldpath.MakePathOrDie("spec", "replicas"),
		Project: func(_ context.Context, obj runtime.Object) (runtime.Object, error) {
			return projectScale(view(obj.(T)))
		},
		Merge: func(_ context.Context, obj, sub runtime.Object) error {
			return mergeScale(view(obj.(T)), sub.(*autoscalingv1.Scale), d.GroupResource())
		},
	}}
}

func projectScale(w scalable) (runtime.Object, error) {
	selector, err := metav1.LabelSelectorAsSelector(w.selector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: w.meta.Name, Namespace: w.meta.Namespace, UID: w.meta.UID,
			ResourceVersion: w.meta.ResourceVersion, CreationTimestamp: w.meta.CreationTimestamp,
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: int32(replicasOf(*w.replicas))},
		Status: autoscalingv1.ScaleStatus{Replicas: w.current, Selector: selector.String()},
	}, nil
}

func mergeScale(w scalable, scale *autoscalingv1.Scale, gr schema.GroupResource) error {
	if errs := nonnegative(int64(scale.Spec.Replicas), field.NewPath("spec", "replicas")); len(errs) > 0 {
		return apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), w.meta.Name, errs)
	}
	if err := checkPreconditions(w.meta, scale.UID, ""); err != nil {
		gr.Resource += "/scale"
		return apierrors.NewConflict(gr, w.meta.Name, err)
	}
	w.meta.ResourceVersion = scale.ResourceVersion
	if *w.replicas == nil || **w.replicas != scale.Spec.Replicas {
		replicas := scale.Spec.Replicas
		*w.replicas = &replicas
		w.meta.Generation++
	}
	return nil
}

// preconditionError means that a request was meant for another object, or for another version of it.
//
// Source: k8s.io/apiserver v0.37.2 pkg/storage/interfaces.go Preconditions.Check.
type preconditionError struct {
	what       string // "UID" or "ResourceVersion"
	want, have any
}

func (e preconditionError) Error() string {
	return fmt.Sprintf("Precondition failed: %s in precondition: %v, %s in object meta: %v", e.what, e.want, e.what,
		e.have)
}

// checkPreconditions compares a request's preconditions with obj. Empty ones hold.
func checkPreconditions(obj metav1.Object, uid types.UID, resourceVersion string) error {
	if uid != "" && uid != obj.GetUID() {
		return preconditionError{"UID", uid, obj.GetUID()}
	}
	if resourceVersion != "" && resourceVersion != obj.GetResourceVersion() {
		return preconditionError{"ResourceVersion", resourceVersion, obj.GetResourceVersion()}
	}
	return nil
}
