//go:generate -command controller-gen go tool -modfile=../../../../tools/go.mod controller-gen
//go:generate controller-gen crd object paths=. output:crd:dir=../manifests/multus

// +kubebuilder:object:generate=true
// +groupName=k8s.cni.cncf.io
// +versionName=v1

// Package multus defines two formats of Multus that the operator reads: network attachment definitions, and the
// annotation that lists the addresses of a Pod.
package multus
