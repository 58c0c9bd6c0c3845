package replicasets

import (
	"maps"
	"math"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// The annotations that the controller writes, on ReplicaSets except where noted.
const (
	// RevisionAnnotation numbers the versions of a Deployment's template in the order in which they were rolled out.
	// The Deployment has it too.
	RevisionAnnotation = "deployment.kubernetes.io/revision"
	// RevisionHistoryAnnotation lists the earlier revisions of a ReplicaSet that was rolled back to, oldest first.
	RevisionHistoryAnnotation = "deployment.kubernetes.io/revision-history"
	// DesiredReplicasAnnotation is the Deployment's spec.replicas at the time the ReplicaSet was last scaled. If
	// spec.replicas is different now, the size of the Deployment was changed; otherwise a rollout is under way.
	DesiredReplicasAnnotation = "deployment.kubernetes.io/desired-replicas"
	// MaxReplicasAnnotation is spec.replicas plus maxSurge at the time the ReplicaSet was last scaled. When the size of
	// the Deployment changes in the middle of a rollout, the ReplicaSet keeps its share of this number.
	MaxReplicasAnnotation = "deployment.kubernetes.io/max-replicas"
)

// notCopied reports whether an annotation has a meaning of its own on Deployments or on ReplicaSets. Such annotations
// are never copied from one to the other.
func notCopied(annotation string) bool {
	switch annotation {
	case corev1.LastAppliedConfigAnnotation, RevisionAnnotation, RevisionHistoryAnnotation,
		DesiredReplicasAnnotation, MaxReplicasAnnotation, appsv1.DeprecatedRollbackTo:
		return true
	}
	return false
}

// AnnotationsForNew returns the annotations that the new ReplicaSet has to have, given its current ones, and whether
// they differ. Those of the Deployment are copied over its own; a key that the Deployment lost stays. Its revision
// becomes newest, unless it is higher already.
//
// A revision that is not a number was written by somebody else. It stays, and while it does, changed is false.
//
// Differs: while it does, kube-controller-manager still copies the annotations when it scales the ReplicaSet.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, SetNewReplicaSetAnnotations
func AnnotationsForNew(d *appsv1.Deployment, current map[string]string,
	newest int64,
) (wanted map[string]string, changed bool) {
	wanted = maps.Clone(current)
	if wanted == nil {
		wanted = map[string]string{}
	}
	for key, value := range d.Annotations {
		if old, ok := wanted[key]; !notCopied(key) && (!ok || old != value) {
			wanted[key], changed = value, true
		}
	}
	revision, ok := current[RevisionAnnotation]
	was, err := parseRevision(revision)
	if err != nil {
		return wanted, false
	}
	if was >= newest {
		return wanted, changed
	}
	wanted[RevisionAnnotation] = strconv.FormatInt(newest, 10)
	if ok {
		// The ReplicaSet was the new one before: a template that comes back gets the highest revision.
		wanted[RevisionHistoryAnnotation] = appendHistory(current[RevisionHistoryAnnotation], revision)
	}
	return wanted, true
}

// RolledBackAnnotations returns the annotations of d after a rollback to rs: those of rs, and of d only those that are
// never copied. The annotations of d describe the template that is replaced, for example its change cause.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, SetDeploymentAnnotationsTo
func RolledBackAnnotations(d *appsv1.Deployment, rs *appsv1.ReplicaSet) map[string]string {
	annotations := map[string]string{}
	for key, value := range d.Annotations {
		if notCopied(key) {
			annotations[key] = value
		}
	}
	for key, value := range rs.Annotations {
		if !notCopied(key) {
			annotations[key] = value
		}
	}
	return WithoutRollbackRequest(annotations)
}

// WithoutRollbackRequest returns the annotations of a Deployment without the request to roll back.
func WithoutRollbackRequest(annotations map[string]string) map[string]string {
	return without(annotations, appsv1.DeprecatedRollbackTo)
}

// ScaleAnnotations returns the two annotations that a ReplicaSet gets whenever it is scaled.
func ScaleAnnotations(replicas, maxReplicas int32) map[string]string {
	return map[string]string{
		DesiredReplicasAnnotation: strconv.Itoa(int(replicas)),
		MaxReplicasAnnotation:     strconv.Itoa(int(maxReplicas)),
	}
}

// Changed returns the annotations in wanted that current lacks, or has with another value.
func Changed(current, wanted map[string]string) map[string]string {
	wanted = maps.Clone(wanted)
	maps.DeleteFunc(wanted, func(key, value string) bool {
		old, ok := current[key]
		return ok && old == value
	})
	return wanted
}

// Count reads an annotation that is a number of pods. It returns false if the annotation is missing or malformed.
func Count(rs *appsv1.ReplicaSet, annotation string) (int32, bool) {
	n, err := strconv.ParseUint(rs.Annotations[annotation], 10, 32)
	if err != nil || n > math.MaxInt32 {
		return 0, false
	}
	return int32(n), true
}
