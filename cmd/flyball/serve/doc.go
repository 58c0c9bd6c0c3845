// Package serve serves an embedded Kubernetes API on a port. With a fake kubelet and the controllers, it is a cluster
// in one process.
//
// serve.go puts the parts together. socket.go is the port with its certificate and token; kubeconfig.go writes the file
// from which clients read both. page.go shows the controllers from inside and holds clients up, and settle.go waits for
// the moment at which that may begin.
package serve
