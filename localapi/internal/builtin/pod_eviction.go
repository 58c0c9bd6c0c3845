package builtin

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// podEviction is a delete with a reason, which a PodDisruptionBudget can reject.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/pod/storage/eviction.go.
func podEviction() resource.Subresource {
	return resource.Subresource{
		Kind:   policyv1.SchemeGroupVersion.WithKind("Eviction"),
		New:    func() runtime.Object { return &policyv1.Eviction{} },
		Verbs:  []string{"create"},
		Delete: evict,
		Merge: func(_ context.Context, obj, sub runtime.Object) error {
			return markEvicted(obj.(*corev1.Pod), sub.(*policyv1.Eviction).DeleteOptions)
		},
		Unmanaged: true,
		Validate:  func(_, _ runtime.Object) field.ErrorList { return nil }, // only a condition changes
	}
}

// evict decides whether a pod may be evicted, and with which options it is deleted.
func evict(ctx context.Context, d resource.Deletion) (o *metav1.DeleteOptions, again bool, err error) {
	pod, eviction := d.Object.(*corev1.Pod), d.Body.(*policyv1.Eviction)
	if eviction.Name != pod.Name {
		return nil, false, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	if eviction.DeleteOptions == nil {
		eviction.DeleteOptions = &metav1.DeleteOptions{}
	}
	o = eviction.DeleteOptions
	d.DryRun = d.DryRun || len(o.DryRun) > 0
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed:
		return o, false, nil
	case corev1.PodPending:
		return o, onlyAsSeen(o, pod), nil
	}
	if pod.DeletionTimestamp != nil {
		return o, false, nil
	}
	budget, err := budgetOf(ctx, d.Others, pod)
	switch {
	case budget == nil || err != nil:
		return o, false, err
	case !podConditionTrue(pod, corev1.PodReady) && mayLoseUnready(budget):
		return o, onlyAsSeen(o, pod), nil
	}
	return o, false, useBudget(ctx, d, budget, pod)
}

// onlyAsSeen makes the delete conditional on the state of the pod for which it was granted, unless the client has set a
// condition.
func onlyAsSeen(o *metav1.DeleteOptions, pod *corev1.Pod) bool {
	if o.Preconditions == nil {
		o.Preconditions = &metav1.Preconditions{}
	}
	if o.Preconditions.ResourceVersion != nil {
		return false
	}
	o.Preconditions.ResourceVersion = ptr.To(pod.ResourceVersion)
	return true
}

// budgetOf returns the budget that protects a pod, or nil if there is none. Errors: more than one does.
func budgetOf(ctx context.Context, others resource.Others, pod *corev1.Pod) (*policyv1.PodDisruptionBudget, error) {
	all, err := others.List(ctx, budgets, pod.Namespace)
	if err != nil {
		return nil, err
	}
	var found *policyv1.PodDisruptionBudget
	for _, obj := range all {
		b := obj.(*policyv1.PodDisruptionBudget)
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if found != nil {
			return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
				Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not " +
					"support.",
			}}
		}
		found = b
	}
	return found, nil
}

var budgets = policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")

// mayLoseUnready reports whether a budget ignores a pod that is not ready.
func mayLoseUnready(b *policyv1.PodDisruptionBudget) bool {
	return ptr.Deref(b.Spec.UnhealthyPodEvictionPolicy, "") == policyv1.AlwaysAllow ||
		b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0
}

// useBudget uses one of the disruptions that a budget allows, and records the pod in its status. Errors: no disruption
// is allowed.
func useBudget(ctx context.Context, d resource.Deletion, budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) error {
	if d.DryRun {
		return budgetRefuses(budget)
	}
	return d.Others.UpdateStatus(ctx, budgets, pod.Namespace, budget.Name, func(obj runtime.Object) error {
		b := obj.(*policyv1.PodDisruptionBudget)
		if err := budgetRefuses(b); err != nil {
			return err
		}
		b.Status.DisruptionsAllowed--
		if b.Status.DisruptionsAllowed == 0 {
			meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
				Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
				Reason:             policyv1.InsufficientPodsReason,
				ObservedGeneration: b.Status.ObservedGeneration,
			})
		}
		if b.Status.DisruptedPods == nil {
			b.Status.DisruptedPods = map[string]metav1.Time{}
		}
		b.Status.DisruptedPods[pod.Name] = metav1.Now()
		return nil
	})
}

// mostDisrupted is how many unfinished evictions a budget can have.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/pod/storage/eviction.go MaxDisruptedPodSize.
const mostDisrupted = 2000

// budgetRefuses returns the reason why a budget allows no disruption now.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/pod/storage/eviction.go checkAndDecrement.
func budgetRefuses(b *policyv1.PodDisruptionBudget) error {
	switch s := &b.Status; {
	case s.ObservedGeneration < b.Generation:
		return noBudget(10, "The disruption budget %s is still being processed by the server.", b.Name)
	case s.DisruptionsAllowed < 0:
		return budgetBroken(b, "pdb disruptions allowed is negative", "pdb disruptions allowed is negative")
	case len(s.DisruptedPods) > mostDisrupted:
		return budgetBroken(b, "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
			"too many pending evictions not confirmed by PDB controller")
	case s.DisruptionsAllowed > 0:
		return nil
	}
	const notNow = "The disruption budget %s does not allow evicting pods currently"
	c := meta.FindStatusCondition(b.Status.Conditions, policyv1.DisruptionAllowedCondition)
	explained := c != nil && c.Status == metav1.ConditionFalse && c.Message != ""
	switch {
	case explained && c.Reason == policyv1.SyncFailedReason:
		return noBudget(0, notNow+" because it failed sync: %s", b.Name, c.Message)
	case b.Status.CurrentHealthy <= b.Status.DesiredHealthy:
		return noBudget(0, "The disruption budget %s needs %d healthy pods and has %d currently", b.Name,
			b.Status.DesiredHealthy, b.Status.CurrentHealthy)
	case explained:
		return noBudget(0, notNow+" (%s): %s", b.Name, c.Reason, c.Message)
	}
	return noBudget(0, notNow, b.Name)
}

// noBudget tells the client to retry later.
func noBudget(seconds int, format string, args ...any) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", seconds)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{
		{Type: policyv1.DisruptionBudgetCause, Message: fmt.Sprintf(format, args...)},
	}
	return err
}

func budgetBroken(b *policyv1.PodDisruptionBudget, why, cause string) error {
	err := apierrors.NewForbidden(schema.GroupResource{Group: policyv1.GroupName, Resource: "poddisruptionbudget"},
		b.Name, errors.New(why))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    policyv1.DisruptionBudgetCause,
		Message: fmt.Sprintf("The disruption budget %s does not allow evicting pods currently: %s", b.Name, cause),
	}}
	return err
}

// markEvicted sets the condition that tells watchers of the pod why it will go.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/pod/storage/eviction.go addConditionAndDeletePod.
func markEvicted(pod *corev1.Pod, o *metav1.DeleteOptions) error {
	kind := schema.GroupResource{Resource: "Pod"} // as in the real server
	if o != nil && o.Preconditions != nil {
		if uid := o.Preconditions.UID; uid != nil && *uid != "" && *uid != pod.UID {
			return apierrors.NewConflict(kind, pod.Name, fmt.Errorf(
				"the UID in the precondition (%s) does not match the UID in record (%s). The object might have been "+
					"deleted and then recreated", *uid, pod.UID))
		}
		if version := o.Preconditions.ResourceVersion; version != nil && *version != "" &&
			*version != pod.ResourceVersion {
			return apierrors.NewConflict(kind, pod.Name, fmt.Errorf(
				"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The "+
					"object might have been modified", *version, pod.ResourceVersion))
		}
	}
	setPodCondition(&pod.Status, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
		Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
	})
	return nil
}
