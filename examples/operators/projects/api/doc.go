// Package api is the resources of the operator: Project, which people create, and ProjectControlPlane, by which the operator asks an
// infrastructure provider for an API server.
package api
