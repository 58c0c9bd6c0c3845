// Package api defines the operator's resources: Project, which users create, and ProjectControlPlane, with which the
// operator requests an API server from an infrastructure provider.
package api
