package replicasets

import (
	"cmp"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
)

// maxHistoryLength bounds [RevisionHistoryAnnotation]. Units: bytes.
const maxHistoryLength = 2000

// appendHistory adds a revision to a comma-separated list, and drops the oldest ones if the list gets too long.
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

// revisionOf returns the revision of a ReplicaSet, or 0 if it has none yet.
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

// HighestRevisions returns the highest revision and the next lower one. Each is 0 if there is none. A revision that is
// not a number does not count.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, MaxRevision and LastRevision
func HighestRevisions(rss []*appsv1.ReplicaSet) (highest, second int64) {
	for _, rs := range rss {
		switch revision, err := revisionOf(rs); {
		case err != nil:
		case revision >= highest:
			highest, second = revision, highest
		case revision > second:
			second = revision
		}
	}
	return highest, second
}

// WithRevision returns the ReplicaSet that has the revision, or nil.
func WithRevision(rss []*appsv1.ReplicaSet, revision int64) *appsv1.ReplicaSet {
	for _, rs := range rss {
		if r, err := revisionOf(rs); err == nil && r == revision {
			return rs
		}
	}
	return nil
}

// ByRevision orders ReplicaSets by revision, then by age. If a revision is not a number, because somebody tampered with
// it, age alone decides.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, ReplicaSetsByRevision
func ByRevision(a, b *appsv1.ReplicaSet) int {
	x, errX := revisionOf(a)
	y, errY := revisionOf(b)
	if errX != nil || errY != nil {
		return byAge(a, b)
	}
	return cmp.Or(cmp.Compare(x, y), byAge(a, b))
}
