// Package suite plays what the operator has to be able to, on any API server: the same scenarios run on localapi, in virtual time, and on the
// real kube-apiserver. Each has a namespace of its own; nodes are the cluster's, so one is played at a time.
package suite
