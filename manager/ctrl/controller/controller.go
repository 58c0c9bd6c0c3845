// Package controller has the options of a controller by the names of controller-runtime.
//
// Source: controller-runtime v0.25.2 pkg/controller.
package controller

import (
	"time"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// Options are the options of reconcile.Options that controller-runtime has, too. The builder accepts either.
type Options struct {
	MaxConcurrentReconciles int
	RateLimiter             workqueue.RateLimiter[reconcile.Request]
	ReconciliationTimeout   time.Duration
	EnableWarmup            *bool
}

// LoopOptions returns the same options by their own names.
func (o Options) LoopOptions() reconcile.Options[reconcile.Request] {
	return reconcile.Options[reconcile.Request]{
		Workers: o.MaxConcurrentReconciles, RateLimiter: o.RateLimiter, Timeout: o.ReconciliationTimeout,
		EnableWarmup: o.EnableWarmup,
	}
}
