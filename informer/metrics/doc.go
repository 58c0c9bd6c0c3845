// Package metrics shows the [informer.Stats] of running informers to Prometheus.
//
// The pipeline counts for itself, in a few atomics; this package reads them when Prometheus asks. Events therefore
// cost the same with metrics as without, and what belongs to an informer that is gone is gone with it.
package metrics
