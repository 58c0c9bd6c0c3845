package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
)

// The reasons of the conditions Ready, Reconciling and Stalled.
const (
	ReasonReconciling    = "Reconciling"
	ReasonReconciled     = "Reconciled"
	ReasonOrphansCleaned = "OrphansCleaned"
	ReasonCleanupFailed  = "CleanupFailed"
	ReasonInvalidRange   = "InvalidRange"
	ReasonPoolCreated    = "PoolCreated"
	ReasonPoolUpdated    = "PoolUpdated"
	ReasonPoolFull       = "PoolFull"
	ReasonMismatch       = "Mismatch"
	ReasonInvalidConfig  = "InvalidConfig"
	ReasonNetworkGone    = "NetworkGone"
	ReasonValidated      = "Validated"
	ReasonNoPodRef       = "NoPodRef"
)

// Further conditions of an IPPool. They exist, with status True, only while there is something to report.
const (
	// RangeOverlap means that another pool of the network has some of the addresses.
	RangeOverlap = "RangeOverlap"
	// NetworkStatusUnreadable means that the network status of some Pods is malformed.
	NetworkStatusUnreadable = "NetworkStatusUnreadable"
)

// state is the state of an object, and the reason for it. A pass computes it once and compares it with what is stored.
type state struct {
	is              conditions.State
	reason, message string
}

func ready(reason, format string, args ...any) state {
	return state{conditions.IsReady, reason, fmt.Sprintf(format, args...)}
}

func reconciling(reason, format string, args ...any) state {
	return state{conditions.IsReconciling, reason, fmt.Sprintf(format, args...)}
}

func stalled(reason, format string, args ...any) state {
	return state{conditions.IsStalled, reason, fmt.Sprintf(format, args...)}
}

// set writes the state into the conditions, and reports whether that is a change.
func (s state) set(list *[]metav1.Condition, generation int64) (news bool) {
	old := conditions.Get(*list, conditions.Ready)
	news = old == nil || old.Reason != s.reason || old.Message != s.message
	if news { // The time moves with the reason, too: announced counts from it.
		for _, name := range []string{conditions.Stalled, conditions.Reconciling, conditions.Ready} {
			conditions.Remove(list, name)
		}
	}
	conditions.SetState(list, generation, s.is, s.reason, s.message)
	return news
}

// eventType returns Warning if a user has to attend to the state.
func (s state) eventType() string {
	if s.is == conditions.IsReady {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// announced returns the state that reports what an earlier pass did, as long as it is shown, and the remaining time.
// Conditions have a resolution of a second, so the time may exceed showFor by one.
func announced(list []metav1.Condition, showFor time.Duration) (s state, rest time.Duration) {
	c := conditions.Get(list, conditions.Ready)
	if c == nil || c.Status != metav1.ConditionTrue ||
		!slices.Contains([]string{ReasonOrphansCleaned, ReasonPoolCreated, ReasonPoolUpdated}, c.Reason) {
		return state{}, 0
	}
	if showFor == 0 {
		return state{}, 0
	}
	return ready(c.Reason, "%s", c.Message), showFor + time.Second - time.Since(c.LastTransitionTime.Time)
}

// warn sets a condition that exists while message is not empty, and reports whether the change is worth an event.
func warn(list *[]metav1.Condition, generation int64, conditionType, message string) (news bool) {
	if message == "" {
		conditions.Remove(list, conditionType)
		return false
	}
	old := conditions.Get(*list, conditionType)
	news = old == nil || old.Message != message
	c := metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: conditionType, Message: message}
	conditions.Set(list, generation, c)
	conditions.Sort(*list)
	return news
}

// some returns the first of many names, sorted.
func some(names []string) string {
	const most = 5
	slices.Sort(names)
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Metrics are the operator's own counters, besides those of the framework. A nil *Metrics counts nothing.
type Metrics struct {
	allocations, assigned, slices *prometheus.GaugeVec
	cleaned                       *prometheus.CounterVec
	reservations                  prometheus.Counter
}

// NewMetrics makes them and registers them.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	labels := []string{"namespace", "pool"}
	gauge := func(subsystem, name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(
			prometheus.GaugeOpts{Namespace: "whereabouts", Subsystem: subsystem, Name: name, Help: help}, labels,
		)
	}
	m := &Metrics{
		allocations: gauge("ippool", "allocations", "Allocations in the pool."),
		assigned:    gauge("nodeslicepool", "assigned_nodes", "Slices that somebody has."),
		slices:      gauge("nodeslicepool", "slices_total", "Slices of the pool."),
		cleaned: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "whereabouts", Subsystem: "ippool", Name: "orphans_cleaned_total",
			Help: "Allocations that were taken back.",
		}, labels),
		reservations: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "whereabouts", Subsystem: "overlappingrange", Name: "reservations_cleaned_total",
			Help: "Reservations that were deleted.",
		}),
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.allocations, m.assigned, m.slices, m.cleaned, m.reservations} {
		errs = append(errs, r.Register(c))
	}
	return m, errors.Join(errs...)
}

func (m *Metrics) pool(key client.ObjectKey, allocations int) {
	if m != nil {
		m.allocations.WithLabelValues(key.Namespace, key.Name).Set(float64(allocations))
	}
}

// cleanedUp counts the orphans, after they were released.
func (m *Metrics) cleanedUp(key client.ObjectKey, orphans int) {
	if m != nil {
		m.cleaned.WithLabelValues(key.Namespace, key.Name).Add(float64(orphans))
	}
}

func (m *Metrics) forgetPool(key client.ObjectKey) {
	if m != nil {
		m.allocations.DeleteLabelValues(key.Namespace, key.Name)
		m.cleaned.DeleteLabelValues(key.Namespace, key.Name)
	}
}

func (m *Metrics) reservationDeleted() {
	if m != nil {
		m.reservations.Inc()
	}
}

func (m *Metrics) sliced(key client.ObjectKey, assigned, slices int32) {
	if m != nil {
		m.assigned.WithLabelValues(key.Namespace, key.Name).Set(float64(assigned))
		m.slices.WithLabelValues(key.Namespace, key.Name).Set(float64(slices))
	}
}

func (m *Metrics) forgetSliced(key client.ObjectKey) {
	if m != nil {
		m.assigned.DeleteLabelValues(key.Namespace, key.Name)
		m.slices.DeleteLabelValues(key.Namespace, key.Name)
	}
}
