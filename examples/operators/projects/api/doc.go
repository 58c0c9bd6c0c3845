//go:generate -command controller-gen go tool -modfile=../../../../tools/go.mod controller-gen
//go:generate controller-gen crd object paths=. output:crd:dir=../manifests/crds

// +kubebuilder:object:generate=true
// +groupName=resourcemanager.miloapis.com
// +versionName=v1alpha1

// Package api defines Project, which users create. The package infrastructure below it defines what the operator
// creates for a Project. "make generate" makes their definitions (manifests/crds) and zz_generated.deepcopy.go.
package api
