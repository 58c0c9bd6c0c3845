package deployment

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// limits is a Deployment's size and how far a rollout may stray from it, in pods.
type limits struct {
	replicas int32 // the size that is asked for
	// maxSurge is how many pods more than replicas there may be. Invariant: 0 unless the strategy is RollingUpdate.
	maxSurge int32
	// maxUnavailable is how many pods fewer than replicas may be available. Invariant: at most replicas; 0 unless the
	// strategy is RollingUpdate.
	maxUnavailable int32
}

// maxReplicas is the most pods that the ReplicaSets may ask for together during a rollout.
func (l limits) maxReplicas() int32 { return l.replicas + l.maxSurge }

// minAvailable is how many pods have to stay available during a rollout.
func (l limits) minAvailable() int32 { return l.replicas - l.maxUnavailable }

// limitsOf reads the limits of d.
//
// Errors: a percentage that is none. The API server lets no such Deployment in.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go, MaxSurge and MaxUnavailable
func limitsOf(d *appsv1.Deployment) (limits, error) {
	l := limits{replicas: ptr.Deref(d.Spec.Replicas, 1)}
	if !isRolling(d) {
		return l, nil
	}
	var surge, unavailable *intstr.IntOrString
	if r := d.Spec.Strategy.RollingUpdate; r != nil {
		surge, unavailable = r.MaxSurge, r.MaxUnavailable
	}
	var err error
	if l.maxSurge, l.maxUnavailable, err = ResolveFenceposts(surge, unavailable, l.replicas); err != nil {
		return limits{}, err
	}
	l.maxUnavailable = min(l.maxUnavailable, l.replicas)
	return l, nil
}

// ResolveFenceposts turns maxSurge and maxUnavailable into numbers of pods, for a Deployment of the given size.
// Percentages of surge are rounded up, those of unavailable down. Where both come to zero a rollout could never
// begin: one pod may then be unavailable. Nil counts as zero.
//
// Errors: a value that is neither a number nor a percentage.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go, ResolveFenceposts
func ResolveFenceposts(maxSurge, maxUnavailable *intstr.IntOrString,
	replicas int32,
) (surge, unavailable int32, err error) {
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

func isRolling(d *appsv1.Deployment) bool {
	return d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType
}
