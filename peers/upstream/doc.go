// Package upstream builds and runs the real Kubernetes control plane: etcd, kube-apiserver and kube-controller-manager,
// as processes on loopback, from the sources of the version that this module requires. The other packages compare
// Flyball with it. [Specs] runs specs of Kubernetes' e2e.test.
//
// The first build takes about eight minutes on two cores; later ones find the binaries in the user's cache
// folder, under a name that changes with the module's requirements.
package upstream
