// Package planes takes the place of an infrastructure provider, for tests and for trying the operator. It runs an API
// server in this process for every ProjectControlPlane, reports in its status when it answers, and closes it when the
// ProjectControlPlane is gone.
//
// The servers share one store, in which each is a tenant, so none sees another's objects.
//
// The servers are behind the path that the API server of the Projects routes to them, in this process ([Host.Wrap]) and
// over a network ([Host.Handler]).
package planes
