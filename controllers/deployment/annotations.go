package deployment

import (
	"maps"
	"math"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Annotations that the controller keeps, on ReplicaSets except where noted.
const (
	// RevisionAnnotation numbers the versions of a Deployment's template in the order in which they were rolled out.
	// It is on the Deployment too.
	RevisionAnnotation = "deployment.kubernetes.io/revision"
	// RevisionHistoryAnnotation lists the revisions that a ReplicaSet had before it was rolled back to, oldest first.
	RevisionHistoryAnnotation = "deployment.kubernetes.io/revision-history"
	// DesiredReplicasAnnotation is the spec.replicas of the Deployment when the ReplicaSet was last scaled. That the
	// Deployment has another now is how a change of its size is told from a step of a rollout.
	DesiredReplicasAnnotation = "deployment.kubernetes.io/desired-replicas"
	// MaxReplicasAnnotation is spec.replicas plus maxSurge when the ReplicaSet was last scaled: what its size is a
	// share of when the Deployment's size changes in the middle of a rollout.
	MaxReplicasAnnotation = "deployment.kubernetes.io/max-replicas"
)

// maxHistoryLength bounds RevisionHistoryAnnotation. Units: bytes.
const maxHistoryLength = 2000

// isOwn tells the annotations that mean something else, or nothing, on the other of Deployment and ReplicaSet. They
// are never copied between the two.
func isOwn(annotation string) bool {
	switch annotation {
	case corev1.LastAppliedConfigAnnotation, RevisionAnnotation, RevisionHistoryAnnotation,
		DesiredReplicasAnnotation, MaxReplicasAnnotation, appsv1.DeprecatedRollbackTo:
		return true
	}
	return false
}

// annotationsForNew is what the new ReplicaSet's annotations have to be, and whether that is a change: those of the
// Deployment on top of its own (a key that the Deployment lost stays), and a revision that is the highest of all.
//
// A revision that is not a number was written by somebody else. It stays, and while it does, changed is false.
//
// Differs: while it does, kube-controller-manager still copies the annotations when it scales the ReplicaSet.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/util/deployment_util.go, SetNewReplicaSetAnnotations
func annotationsForNew(d *appsv1.Deployment, current map[string]string,
	newest int64,
) (wanted map[string]string, changed bool) {
	wanted = maps.Clone(current)
	if wanted == nil {
		wanted = map[string]string{}
	}
	for key, value := range d.Annotations {
		if old, ok := wanted[key]; !isOwn(key) && (!ok || old != value) {
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
		// The ReplicaSet was the new one before: a template that comes back takes the highest revision.
		wanted[RevisionHistoryAnnotation] = appendHistory(current[RevisionHistoryAnnotation], revision)
	}
	return wanted, true
}

// appendHistory adds a revision to a comma separated list, and drops the oldest as far as its length demands it.
func appendHistory(history, revision string) string {
	if history == "" || strings.HasPrefix(history, ",") {
		return revision
	}
	for len(history)+len(",")+len(revision) > maxHistoryLength {
		_, rest, more := strings.Cut(history, ",")
		if !more {
			return revision
		}
		history = rest
	}
	return history + "," + revision
}

// revisionOf is the revision of a ReplicaSet, 0 when it has none yet.
func revisionOf(rs *appsv1.ReplicaSet) (int64, error) {
	revision, ok := rs.Annotations[RevisionAnnotation]
	if !ok {
		return 0, nil
	}
	return strconv.ParseInt(revision, 10, 64)
}

func parseRevision(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	return strconv.ParseInt(s, 10, 64)
}

// replicasAnnotations are the two annotations that a ReplicaSet gets whenever it is scaled.
func replicasAnnotations(l limits) map[string]string {
	return map[string]string{
		DesiredReplicasAnnotation: strconv.Itoa(int(l.replicas)),
		MaxReplicasAnnotation:     strconv.Itoa(int(l.maxReplicas())),
	}
}

// count reads an annotation that is a number of pods. It is false when the annotation is missing or makes no sense.
func count(rs *appsv1.ReplicaSet, annotation string) (int32, bool) {
	n, err := strconv.ParseUint(rs.Annotations[annotation], 10, 32)
	if err != nil || n > math.MaxInt32 {
		return 0, false
	}
	return int32(n), true
}
