// Package v1beta7 has the kinds of the API group sample.flyball.example in version v1beta7.
//
// After a change here, run make generate manifests: it writes zz_generated.deepcopy.go and config/crd/bases anew.
//
// +kubebuilder:object:generate=true
// +groupName=sample.flyball.example
package v1beta7
