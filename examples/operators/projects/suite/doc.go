// Package suite plays what the operator has to be able to, on any API server: the same scenarios run on localapi, in virtual time, and
// on the real kube-apiserver. Control planes are those of package planes in both. One scenario is played at a time, for Projects are the
// cluster's.
package suite
