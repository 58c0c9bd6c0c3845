// Package planes stands in for an infrastructure provider, in tests and demos. It runs an API server in this process
// for every ProjectControlPlane, sets its status when the server answers, and closes the server when the
// ProjectControlPlane is gone.
//
// The servers share one store but do not see each other's objects: each is a tenant of the store.
//
// Clients reach a server under the path that the API server of the Projects routes to it: in this process through
// [Host.Wrap], over a network through [Host.Handler].
package planes
