// Package api has the resources of the operator: Project, which users create, and ProjectControlPlane, with which the
// operator requests an API server from an infrastructure provider.
package api
