package replicaset

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers/internal/pods"
)

// The reasons of events on a ReplicaSet. The failures are also the reasons of its condition ReplicaFailure.
const (
	reasonFailedCreate     = "FailedCreate"
	reasonSuccessfulCreate = "SuccessfulCreate"
	reasonFailedDelete     = "FailedDelete"
	reasonSuccessfulDelete = "SuccessfulDelete"
)

// planStatus returns the status that set should have. It counts the pods as they were before the writes of this sync,
// of which writeErr is the outcome.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set_utils.go, calculateStatus
func planStatus(o observed, writeErr error, now time.Time) appsv1.ReplicaSetStatus {
	set := o.set
	status := appsv1.ReplicaSetStatus{
		Replicas:            int32(len(o.active)),
		TerminatingReplicas: ptr.To(int32(len(o.terminating))),
		ObservedGeneration:  set.Generation,
		Conditions:          planConditions(o, writeErr, now),
	}
	template := labels.Set(set.Spec.Template.Labels).AsSelectorPreValidated()
	for _, pod := range o.active {
		if template.Matches(labels.Set(pod.Labels)) {
			status.FullyLabeledReplicas++
		}
		if pods.Ready(pod) {
			status.ReadyReplicas++
			if pods.Available(pod, set.Spec.MinReadySeconds, now) {
				status.AvailableReplicas++
			}
		}
	}
	return status
}

// planConditions sets ReplicaFailure when a write failed and removes it when none did. A ReplicaFailure that is already
// set stays unchanged, with its first message.
func planConditions(o observed, writeErr error, now time.Time) []appsv1.ReplicaSetCondition {
	current := o.set.Status.Conditions
	isFailure := func(c appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure }
	failed := slices.ContainsFunc(current, isFailure)
	switch {
	case writeErr != nil && !failed:
		reason := reasonFailedDelete
		if surplusOf(o) < 0 {
			reason = reasonFailedCreate
		}
		return append(slices.Clip(current), appsv1.ReplicaSetCondition{
			Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.Time{Time: now}, Reason: reason, Message: writeErr.Error(),
		})
	case writeErr == nil && failed:
		return slices.DeleteFunc(slices.Clone(current), isFailure)
	default:
		return current
	}
}

// sameStatus reports whether have and want are equal in every field.
func sameStatus(have, want appsv1.ReplicaSetStatus) bool {
	return equality.Semantic.DeepEqual(have, want)
}

// nextCheck returns when to look at the set again because a pod becomes available by the passing of time: the earliest
// such time after now, for which the status was made. If a ready pod is not available and there is no such time,
// nextCheck returns now plus minReadySeconds. Zero means that no check is needed.
//
// This is a fallback. Pod events queue the set, too, but the queue keeps one delay for a key, and pods become ready at
// different times.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, FindMinNextPodAvailabilityCheck
func nextCheck(set *appsv1.ReplicaSet, active []*corev1.Pod, now time.Time) time.Time {
	minReady := set.Spec.MinReadySeconds
	if minReady <= 0 || set.Status.ReadyReplicas == set.Status.AvailableReplicas {
		return time.Time{}
	}
	var next time.Time
	for _, pod := range active {
		at, ok := pods.AvailableAt(pod, minReady)
		if ok && at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if next.IsZero() {
		next = now.Add(time.Duration(minReady) * time.Second)
	}
	return next
}
