// Package suite tests the operator on any API server. The same scenarios run on localapi, in virtual time, and on the
// real kube-apiserver. Each scenario has a namespace of its own. The scenarios share the cluster's nodes, so they run
// one at a time.
package suite
