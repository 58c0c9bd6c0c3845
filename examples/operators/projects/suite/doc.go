// Package suite tests the operator on any API server. The same scenarios run on localapi, in virtual time, and on the
// real kube-apiserver. Package planes provides the control planes in both cases. Projects are cluster-scoped, so the
// scenarios run one at a time.
package suite
