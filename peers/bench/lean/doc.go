// Package lean measures what an informer costs on objects as clusters have them: generated pods, and the same as a
// custom resource, which a replay server sends over HTTP to Flyball's informer, client-go's and controller-runtime's
// in turn, each in a process of its own. The command is in cmd/informers.
package lean
