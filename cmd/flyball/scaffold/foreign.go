package scaffold

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/internal/plural"
)

// coreGroups are the API groups of Kubernetes, by the names of their packages in k8s.io/api. They are also the names
// that kubebuilder knows them by.
var coreGroups = map[string]string{
	"admissionregistration": "admissionregistration.k8s.io", "apps": "apps", "autoscaling": "autoscaling",
	"batch": "batch", "certificates": "certificates.k8s.io", "coordination": "coordination.k8s.io", "core": "",
	"discovery": "discovery.k8s.io", "events": "events.k8s.io", "networking": "networking.k8s.io",
	"node": "node.k8s.io", "policy": "policy", "rbac": "rbac.authorization.k8s.io", "resource": "resource.k8s.io",
	"scheduling": "scheduling.k8s.io", "storage": "storage.k8s.io",
}

// clusterKinds are the kinds of Kubernetes that are in no namespace.
var clusterKinds = []string{
	"APIService", "CSIDriver", "CSINode", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding",
	"DeviceClass", "IngressClass", "MutatingWebhookConfiguration", "Namespace", "Node", "PersistentVolume",
	"PriorityClass", "ResourceSlice", "RuntimeClass", "StorageClass", "ValidatingAdmissionPolicy",
	"ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment",
}

const podSpec = `{"containers": [{"name": "a", "image": "a"}]`

// specs are the smallest valid specs of some kinds of Kubernetes, for tests.
var specs = map[string]string{
	"Pod": podSpec + "}", "Deployment": templated, "DaemonSet": templated, "ReplicaSet": templated,
	"StatefulSet":           templated,
	"Job":                   `{"template": {"spec": ` + podSpec + `, "restartPolicy": "Never"}}}`,
	"Service":               `{"ports": [{"port": 80}]}`,
	"PersistentVolumeClaim": `{"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}`,
}

const templated = `{"selector": {"matchLabels": {"app": "a"}}, "template": {"metadata": {"labels": {"app": "a"}}, ` +
	`"spec": ` + podSpec + `}}}`

// foreign completes the names of a kind that is not the project's own: one of Kubernetes, or one of another project
// whose package is at external. What was recorded of it counts where nothing else is said. Errors: there is no such
// kind.
func (p *project) foreign(n names, external, domain string) (names, error) {
	r := p.find(n)
	recorded, _ := r["path"].(string)
	recordedDomain, _ := r["domain"].(string)
	recordedPlural, _ := r["plural"].(string)
	n.plural = cmp.Or(n.plural, recordedPlural, plural.Of(n.kind))
	n.nested = p.multigroup()
	if isExternal, _ := r["external"].(bool); external != "" || isExternal {
		n.external = cmp.Or(external, recorded)
		n.group = strings.Trim(n.shortGroup+"."+cmp.Or(domain, recordedDomain), ".")
		return n, nil
	}
	short := strings.TrimSuffix(n.shortGroup, ".authorization")
	group, known := coreGroups[short]
	kind := schema.GroupVersionKind{Group: group, Version: n.version, Kind: n.kind}
	switch {
	case !known:
		return n, fmt.Errorf("the project has no kind %s in %s %s: create it by flyball create api; for a kind of "+
			"another project, name the package of its types by --external-api-path", n.kind, n.group, n.version)
	case !clientgoscheme.Scheme.Recognizes(kind):
		return n, fmt.Errorf("neither the project nor Kubernetes has a kind %s in %s %s: create one of your own by "+
			"flyball create api", n.kind, n.shortGroup, n.version)
	}
	n.external, n.group, n.core = "k8s.io/api/"+short+"/"+n.version, group, true
	n.cluster = n.cluster || slices.Contains(clusterKinds, n.kind)
	return n, nil
}

// sample returns the smallest valid object in JSON, without metadata, if it is known.
func (n names) sample() string {
	if spec, known := specs[n.kind]; known && n.core {
		return `{"spec": ` + spec + "}"
	}
	return "{}"
}
