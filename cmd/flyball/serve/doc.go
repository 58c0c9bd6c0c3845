// Package serve serves an embedded Kubernetes API on a port. With a fake kubelet and the controllers, it is a cluster
// in one process.
//
// serve.go puts the parts together, and has the port with its certificate and token; kubeconfig.go writes the file from
// which clients read both. page.go shows the controllers from inside and holds clients up.
package serve
