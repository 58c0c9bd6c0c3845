// Package project is the provider of project control planes: API servers of their own, each announced by an object of
// the local cluster.
//
//	         the object                                  its condition      where the control plane answers
//	External Project (resourcemanager.miloapis.com)       Ready              BASE/apis/resourcemanager.miloapis.com/v1alpha1/projects/NAME/control-plane
//	Internal ProjectControlPlane (infrastructure.miloapis.com)  ControlPlaneReady  https://milo-apiserver.project-NAME.svc.cluster.local:6443
//
// The object's name is the cluster's, its labels are the cluster's labels, and its UID the identity: a project that
// is deleted and made anew is another cluster. It can be used while the condition is True and the object is not being
// deleted; else it is announced with the reason why not. When the endpoint becomes another, so does the cluster.
//
// Nothing here waits for a control plane, so one that does not answer delays none of the others, and nothing is
// polled: what changes in the objects is announced as the watch tells it.
//
// Source: pkg/multicluster-runtime/milo of github.com/datum-cloud/milo.
package project
