// Package operators plays the scenarios of the operators in examples/operators on the real kube-apiserver: the same
// that their own tests play on localapi. Each operator comes with the permissions that its manifests grant, and no
// others.
package operators
