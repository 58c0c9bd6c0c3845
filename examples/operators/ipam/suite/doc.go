// Package suite tests the operator on any API server: the same scenarios run on localapi, in virtual time, and on the
// real kube-apiserver. Each scenario has a namespace of its own. The nodes are shared by the whole cluster, so the
// scenarios run one at a time.
package suite
