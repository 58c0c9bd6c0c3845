// Package listwatch speaks to the server: it lists the objects of a resource and watches them change.
//
// Read listerwatcher.go, the interface that a reflector needs; rest.go, the one for a Kubernetes API;
// discovered.go, which finds out the resource of a kind first. How the bytes are decoded is package wire.
package listwatch
