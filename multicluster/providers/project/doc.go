// Package project is the provider of project control planes: API servers of their own, each announced by an object of
// the local cluster.
//
//	         the object                                  its condition      where the control plane answers
//	External Project (resourcemanager.miloapis.com)       Ready              BASE/apis/resourcemanager.miloapis.com/v1alpha1/projects/NAME/control-plane
//	Internal ProjectControlPlane (infrastructure.miloapis.com)  ControlPlaneReady  https://milo-apiserver.project-NAME.svc.cluster.local:6443
//
// The object's name is the cluster's name, its labels are the cluster's labels, and its UID the identity: a project
// that is deleted and created again is another cluster. The cluster can be used while the condition is True and the
// object is not being deleted; otherwise it is announced with the reason why not. If the endpoint changes, the cluster
// is replaced by another one.
//
// The provider does not wait for control planes, so one that does not answer does not delay the others. It does not
// poll: changes of the objects arrive through the watch.
//
// Source: pkg/multicluster-runtime/milo of github.com/datum-cloud/milo.
package project
