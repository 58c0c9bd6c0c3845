// Package metrics compares the names under which a manager shows itself to Prometheus with controller-runtime's.
package metrics
