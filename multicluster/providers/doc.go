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
// so it does not read a file that is half written. When the provider starts, the first check reads every file at once,
// and the second one reads all of them again. The provider follows symbolic links. A mounted Secret or ConfigMap, whose
// ..data link is replaced, is therefore read as a whole. The provider ignores the entries of a directory whose names
// begin with a dot. It does not check the files with certificates and tokens that a kubeconfig names, because client-go
// reads those again by itself.
//
// If a file cannot be read or parsed, its clusters stay as they were. So does the cluster of a single invalid context.
// If a file disappears from the directory, its clusters leave. But if the path itself, file or directory, disappears,
// all clusters stay. Files are trusted: they may name commands that this process runs.
//
// # Secrets
//
// Each Secret with the label is a cluster. The cluster has the Secret's name and labels. The current context of the
// kubeconfig in the Secret describes how to reach it. If the kubeconfig is invalid, the cluster stays as it was until
// the Secret is repaired or deleted, and an event on the Secret reports the error.
//
// A user who may write such a Secret decides where this process connects to. By default the user can do no more than
// that: the provider rejects a kubeconfig that names a command, because this process would run it. It also rejects one
// that names a file, because this process could send one of its own files, such as its token, to another server.
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
// created again is a new cluster. The cluster is ready while the condition is True and the object is not being deleted;
// otherwise the announcement has the reason. If the endpoint changes, a new cluster replaces the old one.
//
// Source: pkg/multicluster-runtime/milo of github.com/datum-cloud/milo.
package providers
