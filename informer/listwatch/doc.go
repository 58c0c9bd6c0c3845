// Package listwatch talks to the server: it lists the objects of a resource and watches their changes.
//
// Read listerwatcher.go, the interface that a reflector needs; rest.go, its implementation for a Kubernetes API;
// requesterror.go, the errors that users see when a list or a watch fails. Package wire decodes the bytes.
package listwatch
