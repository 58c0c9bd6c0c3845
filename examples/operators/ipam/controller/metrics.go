package controller

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flyball-dev/flyball/client"
)

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
