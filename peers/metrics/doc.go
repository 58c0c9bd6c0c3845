// Package metrics compares the names of a manager's Prometheus metrics with controller-runtime's.
package metrics
