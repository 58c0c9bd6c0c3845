// Package serving states what stands behind a Service: which Services select a pod, what of a pod's change concerns
// them, at which port it serves, and since when a change waits to be published. The controllers of Endpoints and of
// EndpointSlices publish the same facts in two formats; one definition keeps the two from drifting apart.
package serving
