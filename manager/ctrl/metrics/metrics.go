// Package metrics has the registry that a process shares, as controller-runtime has it. A manager serves it if it is
// given the registry:
//
//	ctrl.Options{Metrics: metrics.Registry, MetricsAddr: ":8443"}
//
// Source: controller-runtime v0.25.2 pkg/metrics.
package metrics

import "github.com/flyball-dev/flyball/manager/metrics"

// Registry is a registry for the metrics of the process and of one manager. manager/metrics.New makes others.
var Registry = metrics.New()
