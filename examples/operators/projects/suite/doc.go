// Package suite tests the operator on any API server: the same scenarios run on localapi, in virtual time, and on the
// real kube-apiserver. The control planes are those of package planes in both cases. Projects are cluster-scoped, so
// the scenarios run one at a time.
package suite
