// Package listwatch talks to the server: it lists the objects of a resource and watches their changes.
//
// Read listerwatcher.go, the interface that a reflector needs; rest.go, its implementation for a Kubernetes API;
// resources.go, the resource of a kind; discovered.go, a kind whose resource is looked up first; requesterror.go, the
// error that users see when a list or a watch fails. Package wire decodes the bytes.
package listwatch
