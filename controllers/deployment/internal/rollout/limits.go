package rollout

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Limits is the size of a Deployment and how far a rollout may deviate from it, in pods.
type Limits struct {
	Replicas int32 // the size that the user asked for
	// MaxSurge is how many pods more than Replicas there may be. Invariant: 0 unless the strategy is RollingUpdate.
	MaxSurge int32
	// MaxUnavailable is how many pods fewer than Replicas may be available. Invariant: at most Replicas; 0 unless the
	// strategy is RollingUpdate.
	MaxUnavailable int32
}

// MaxReplicas is how many pods the ReplicaSets together may ask for during a rollout.
func (l Limits) MaxReplicas() int32 { return l.Replicas + l.MaxSurge }

// MinAvailable is how many pods have to stay available during a rollout.
func (l Limits) MinAvailable() int32 { return l.Replicas - l.MaxUnavailable }

// IsRolling reports whether the strategy of d is RollingUpdate.
func IsRolling(d *appsv1.Deployment) bool {
	return d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType
}

// LimitsOf reads the limits of d.
//
// Errors: a malformed percentage. The API server refuses such a Deployment.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, MaxSurge and MaxUnavailable
func LimitsOf(d *appsv1.Deployment) (Limits, error) {
	l := Limits{Replicas: ptr.Deref(d.Spec.Replicas, 1)}
	if !IsRolling(d) {
		return l, nil
	}
	var surge, unavailable *intstr.IntOrString
	if r := d.Spec.Strategy.RollingUpdate; r != nil {
		surge, unavailable = r.MaxSurge, r.MaxUnavailable
	}
	var err error
	if l.MaxSurge, l.MaxUnavailable, err = resolve(surge, unavailable, l.Replicas); err != nil {
		return Limits{}, err
	}
	l.MaxUnavailable = min(l.MaxUnavailable, l.Replicas)
	return l, nil
}

// resolve turns maxSurge and maxUnavailable into numbers of pods, for a Deployment of the given size. A percentage is
// rounded up for maxSurge, and down for maxUnavailable. If both come to zero the rollout could never begin, so one pod
// may be unavailable. Nil counts as zero.
//
// Errors: a value that is neither a number nor a percentage.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, ResolveFenceposts
func resolve(maxSurge, maxUnavailable *intstr.IntOrString, replicas int32) (surge, unavailable int32, err error) {
	zero := intstr.FromInt32(0)
	s, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(maxSurge, zero), int(replicas), true)
	if err != nil {
		return 0, 0, fmt.Errorf("read maxSurge: %w", err)
	}
	u, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(maxUnavailable, zero), int(replicas), false)
	if err != nil {
		return 0, 0, fmt.Errorf("read maxUnavailable: %w", err)
	}
	if s == 0 && u == 0 {
		u = 1
	}
	return int32(s), int32(u), nil
}
