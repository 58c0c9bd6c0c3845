package replicaset

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/controllers/internal/pods"
)

// Metrics receives what the controller measures. The names are those of the metrics it stands for.
//
// Concurrency: called by several workers at once; must not block.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/replicaset/metrics/metrics.go
type Metrics interface {
	// StaleSyncSkip counts a sync that was put off because the cache of the resource lags behind our own writes:
	// replicaset_controller_stale_sync_skips_total{group,resource}.
	StaleSyncSkip(group, resource string)
	// DeletionAgeRatio observes, for a ready pod chosen for deletion, its age as a multiple of the youngest ready
	// pod's: replicaset_controller_sorting_deletion_age_ratio, with buckets 0.25, 0.5, … 8.
	DeletionAgeRatio(ratio float64)
}

// noMetrics is the [Metrics] of a controller that was given none.
type noMetrics struct{}

func (noMetrics) StaleSyncSkip(string, string) {}
func (noMetrics) DeletionAgeRatio(float64)     {}

// deletionAgeRatios are the ratios to observe when victims were chosen among active. There are none while the
// youngest ready pod has no age yet.
func deletionAgeRatios(active, victims []*corev1.Pod, now time.Time) []float64 {
	var youngest time.Time
	for _, pod := range active {
		if pods.Ready(pod) && pod.CreationTimestamp.After(youngest) {
			youngest = pod.CreationTimestamp.Time
		}
	}
	base := now.Sub(youngest)
	if youngest.IsZero() || base <= 0 {
		return nil
	}
	var ratios []float64
	for _, pod := range victims {
		if pods.Ready(pod) {
			ratios = append(ratios, float64(now.Sub(pod.CreationTimestamp.Time))/float64(base))
		}
	}
	return ratios
}
