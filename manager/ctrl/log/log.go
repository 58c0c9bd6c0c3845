// Package log has the names of controller-runtime for klog, with which the framework logs.
//
// Source: controller-runtime v0.25.2 pkg/log.
package log

import (
	"context"

	"k8s.io/klog/v2"
)

// Log writes to the logger of [SetLogger], even if it was copied before that was set.
var Log = klog.Background()

// SetLogger is klog.SetLogger, and IntoContext klog.NewContext.
var (
	SetLogger   = klog.SetLogger
	IntoContext = klog.NewContext
)

// FromContext is klog.FromContext, with values.
func FromContext(ctx context.Context, keysAndValues ...any) klog.Logger {
	return klog.FromContext(ctx).WithValues(keysAndValues...)
}
