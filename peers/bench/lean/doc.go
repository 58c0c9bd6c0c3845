// Package lean measures what an informer costs on realistic objects: generated pods, and the same content as a custom
// resource. A replay server sends them over HTTP to the informers of Flyball, client-go and controller-runtime in turn,
// each in a process of its own. The command is in cmd/informers.
package lean
