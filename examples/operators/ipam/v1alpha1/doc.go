//go:generate -command controller-gen go tool -modfile=../../../../tools/go.mod controller-gen
//go:generate controller-gen crd object paths=. output:crd:dir=../manifests/crds

// +kubebuilder:object:generate=true
// +groupName=whereabouts.cni.cncf.io

// Package v1alpha1 defines the operator's resources, in the form in which the CNI plugin whereabouts writes them.
// "make generate" makes their definitions (manifests/crds) and zz_generated.deepcopy.go of the types.
package v1alpha1
