package builtin

import (
	"context"
	"fmt"
	"reflect"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
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
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/apps/deployment/storage/storage.go ScaleREST.
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
	if errs := verify.Errors(nil, func(f verify.Field) {
		f.Nonnegative("spec.replicas", int64(scale.Spec.Replicas))
	}); len(errs) > 0 {
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

// validateTemplate validates a pod template by itself.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidatePodTemplateSpec.
func validateTemplate(f verify.Field, t *corev1.PodTemplateSpec) {
	f.Labels("labels", t.Labels)
	f.Add(apivalidation.ValidateAnnotations(t.Annotations, f.Path("annotations"))...)
	validatePodSpec(f.Child("spec"), &t.Spec)
	f.Forbid("spec.ephemeralContainers", len(t.Spec.EphemeralContainers) > 0,
		"ephemeral containers not allowed in pod template")
}

// workload is what the rules of types with a pod template and a selector have to know of the type.
type workload struct {
	selector *metav1.LabelSelector
	template *corev1.PodTemplateSpec
	name     string // in the error for an empty selector, "deployment"
	kind     string // in the error for a deadline, "ReplicaSet"
}

// validateWorkload validates a selector, that it selects the pods of its own template, and the template of pods that
// run for ever. f is the spec.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/apps/validation/validation.go ValidateDeploymentSpec,
// ValidatePodTemplateSpecForReplicaSet.
func validateWorkload(f verify.Field, w workload) {
	if validateSelector(f, w) {
		validateTemplate(f.Child("template"), w.template)
		runsForever(f.Child("template.spec"), w.template, w.kind)
	}
}

// runsForever requires that a template's pods are restarted and have no deadline.
func runsForever(f verify.Field, t *corev1.PodTemplateSpec, kind string) {
	verify.Supported(f, "restartPolicy", t.Spec.RestartPolicy, corev1.RestartPolicyAlways)
	f.Forbid("activeDeadlineSeconds", t.Spec.ActiveDeadlineSeconds != nil,
		"activeDeadlineSeconds in "+kind+" is not Supported")
}

// validateSelector validates a selector and what it selects. It reports whether there is a valid selector.
func validateSelector(f verify.Field, w workload) bool {
	s, daemons := w.selector, w.kind == "DaemonSet" // for which the real server only reports a mismatch
	if s == nil {
		f.Require("selector", daemons, "")
	} else {
		f.LabelSelector("selector", s)
		f.Reject("selector", len(s.MatchLabels)+len(s.MatchExpressions) == 0, s,
			"empty selector is invalid for "+w.name)
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		f.Reject("selector", true, s, "invalid label selector")
		return false
	}
	own := w.template.Labels
	f.Reject("template.metadata.labels", (!selector.Empty() || daemons) && !selector.Matches(labels.Set(own)), own,
		"`selector` does not match template `labels`")
	return true
}

// nonnegatives requires that the named numbers in the struct that of points to are not negative.
func nonnegatives(f verify.Field, of any, names ...string) {
	for _, name := range names {
		f.Nonnegative(name, number(of, name))
	}
}

// number returns the number that a struct has under a name in JSON; 0 if it is missing.
func number(of any, name string) int64 {
	if v := reflect.Indirect(fieldOf(of, name)); v.IsValid() {
		return v.Int()
	}
	return 0
}

// validateCounters validates the numbers in the status of a workload. None is negative, no number of pods exceeds the
// number of all pods, and not more are available than ready. labeled is the number that the type has besides these two.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/apps/validation/validation.go ValidateDeploymentStatus,
// ValidateReplicaSetStatus.
func validateCounters(f verify.Field, status any, labeled string, all ...string) {
	nonnegatives(f, status, all...)
	for _, pods := range []string{labeled, "readyReplicas", "availableReplicas"} {
		n := number(status, pods)
		f.Reject(pods, n > number(status, "replicas"), n, "cannot be greater than status.replicas")
	}
	n := number(status, "availableReplicas")
	f.Reject("availableReplicas", n > number(status, "readyReplicas"), n, "cannot be greater than readyReplicas")
}

// defaultReplicas sets the two defaults that all scalable apps share.
func defaultReplicas(replicas, historyLimit **int32) {
	setDefaultPtr(replicas, 1)
	if historyLimit != nil {
		setDefaultPtr(historyLimit, 10)
	}
}

// selectorString returns a selector as a Scale and the SELECTOR column print it.
func selectorString(s *metav1.LabelSelector) string {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return "<invalid>"
	}
	return selector.String()
}
