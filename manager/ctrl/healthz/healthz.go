// Package healthz has the names of controller-runtime for AddHealthzCheck and AddReadyzCheck of the manager.
//
// Source: controller-runtime v0.25.2 pkg/healthz.
package healthz

import "net/http"

// Checker reports an error if something is not healthy.
type Checker = func(r *http.Request) error

// Ping always succeeds.
func Ping(*http.Request) error { return nil }
