// Package providers has the providers of a fleet: [NewKubeconfig], [NewSecrets] and [NewProjects].
//
// # Kubeconfig files
//
//	a file       each of its contexts is a cluster, named after the context
//	a directory  each file in it is a cluster: its current context, named after the file (eu.yaml is "eu")
//
// The provider checks the files once a second. It reads a file when its metadata has changed and then stayed the same
// for one check, so it does not read a file that is half written. It follows symbolic links, so a mounted Secret or
// ConfigMap, whose ..data link is replaced, is read as a whole. It ignores entries of a directory that begin with a
// dot. It does not check certificates and tokens in files of their own: client-go reads them again by itself.
//
// If a file cannot be read or parsed, the clusters that it defined before stay. The same holds for a single invalid
// context. If a file disappears from a watched directory, its clusters leave. If a single watched file, or the
// directory itself, disappears, everything stays as it was. Files are trusted: they may name commands that this process
// runs.
//
// # Secrets
//
// Each Secret with the label is a cluster, named after it, with its labels, reached by the current context of the
// kubeconfig in it. If that is invalid, the cluster stays as it was until the Secret is repaired or deleted, and an
// event on the Secret reports the error.
//
// Anybody who may write such a Secret decides where this process connects to. By default they can do no more than that:
// the provider rejects a kubeconfig that names a command, or a file of this process. It could make the process run
// something, or send its own token to another server.
//
// # Projects
//
// Project control planes are API servers of their own, each announced by an object of the local cluster.
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
// Source: pkg/multicluster-runtime/milo of github.com/datum-cloud/milo.
package providers
