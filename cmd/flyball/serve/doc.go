// Package serve is an embedded Kubernetes API on a port: with a kubelet and the controllers, a cluster in one process.
//
// serve.go puts the parts together, socket.go is the port with its certificate and token, kubeconfig.go the file that clients
// read both from.
package serve
