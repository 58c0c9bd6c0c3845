// Package planes takes the place of an infrastructure provider, for tests and for trying the operator: it runs an API server in this
// process for every ProjectControlPlane, says in its status when it answers, and closes it when the ProjectControlPlane is gone.
//
// The servers share one store, in which each is a tenant: none sees what the others have.
//
// The servers are behind the path that the API server of the Projects routes to them, in this process ([Host.Wrap]) and over a
// network ([Host.Handler]).
package planes
