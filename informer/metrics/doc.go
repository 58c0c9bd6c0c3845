// Package metrics exposes the [informer.Stats] of running informers to Prometheus.
//
// An informer counts in a few atomic variables, and this package reads them when Prometheus asks. So events cost the
// same with and without metrics, and the metrics of an informer disappear with it.
package metrics
