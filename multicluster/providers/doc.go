// Package providers has the providers of a fleet: [NewKubeconfig], [NewSecrets] and [NewProjects].
//
// # Kubeconfig files
//
// The path is that of a file or of a directory:
//
//	a file       each of its contexts is a cluster, named after the context
//	a directory  each file in it is a cluster: its current context, named after the file (eu.yaml is "eu")
//
// The provider checks the files once a second. It reads a file when two checks in a row have found the same metadata,
// so it does not read a file that is half written. It follows symbolic links. A mounted Secret or ConfigMap, whose
// ..data link is replaced, is therefore read as a whole. Entries of a directory that begin with a dot are ignored. The
// provider does not check files with certificates and tokens that a kubeconfig names, because client-go reads them
// again by itself.
//
// If a file cannot be read or parsed, its clusters stay as they were. So does the cluster of a single invalid context.
// If a file disappears from the directory, its clusters leave. But if the path itself, file or directory, disappears,
// all clusters stay. Files are trusted: they may name commands that this process runs.
//
// # Secrets
//
// Each Secret with the label is a cluster. It has the Secret's name and labels, and is reached by the current context
// of the kubeconfig in the Secret. If the kubeconfig is invalid, the cluster stays as it was until the Secret is
// repaired or deleted, and an event on the Secret reports the error.
//
// A user who may write such a Secret decides where this process connects to. By default the user can do no more than
// that: the provider rejects a kubeconfig that names a command, which this process would run, or one of its files,
// which it might send to another server, such as its own token.
//
// # Projects
//
// The control planes of projects are API servers of their own. An object in the local cluster announces each of them.
//
//	         the object                                  its condition      where the control plane answers
//	External Project (resourcemanager.miloapis.com)       Ready              BASE/apis/resourcemanager.miloapis.com/v1alpha1/projects/NAME/control-plane
//	Internal ProjectControlPlane (infrastructure.miloapis.com)  ControlPlaneReady  https://milo-apiserver.project-NAME.svc.cluster.local:6443
//
// The cluster has the object's name and labels. Its identity is the object's UID, so a project that is deleted and
// created again is another cluster. The cluster is ready while the condition is True and the object is not being
// deleted; otherwise the announcement has the reason. If the endpoint changes, another cluster replaces this one.
//
// Source: pkg/multicluster-runtime/milo of github.com/datum-cloud/milo.
package providers
