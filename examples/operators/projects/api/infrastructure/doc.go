//go:generate -command controller-gen go tool -modfile=../../../../../tools/go.mod controller-gen
//go:generate controller-gen crd object paths=. output:crd:dir=../../manifests/crds

// +kubebuilder:object:generate=true
// +groupName=infrastructure.miloapis.com
// +versionName=v1alpha1

// Package infrastructure defines ProjectControlPlane, with which the operator requests an API server from an
// infrastructure provider.
package infrastructure
