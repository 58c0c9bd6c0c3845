package scaffold

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/internal/plural"
)

// coreGroups are the API groups of Kubernetes, by the names that kubebuilder knows them by. They are also the names of
// their packages in k8s.io/api, but for rbac.
var coreGroups = map[string]string{
	"admissionregistration": "admissionregistration.k8s.io", "apps": "apps", "autoscaling": "autoscaling",
	"batch": "batch", "certificates": "certificates.k8s.io", "coordination": "coordination.k8s.io", "core": "",
	"discovery": "discovery.k8s.io", "events": "events.k8s.io", "networking": "networking.k8s.io",
	"node": "node.k8s.io", "policy": "policy", "rbac.authorization": "rbac.authorization.k8s.io",
	"resource": "resource.k8s.io", "scheduling": "scheduling.k8s.io", "storage": "storage.k8s.io",
}

// clusterKinds are the kinds of Kubernetes that are in no namespace.
var clusterKinds = []string{
	"CSIDriver", "CSINode", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "ClusterTrustBundle",
	"DeviceClass", "DeviceTaintRule", "IPAddress", "IngressClass", "MutatingAdmissionPolicy",
	"MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "Namespace", "Node", "PersistentVolume",
	"PriorityClass", "ResourceSlice", "RuntimeClass", "ServiceCIDR", "StorageClass", "ValidatingAdmissionPolicy",
	"ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment", "VolumeAttributesClass",
}

const (
	podSpec   = `{"containers": [{"name": "a", "image": "a"}]}`
	podOf     = `{"metadata": {"labels": {"app": "a"}}, "spec": ` + podSpec + `}`
	templated = `{"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": ` + podOf + `}}`
	jobSpec   = `{"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}}`
	roleRef   = `{"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}}`
)

// samples are the smallest valid objects of kinds of Kubernetes, for tests, without metadata. Kinds that are not here
// need nothing, or are rarely written by an operator.
var samples = map[string]string{
	"Pod": `{"spec": ` + podSpec + `}`, "PodTemplate": `{"template": ` + podOf + `}`, "Deployment": templated,
	"DaemonSet": templated, "ReplicaSet": templated, "StatefulSet": templated, "Job": `{"spec": ` + jobSpec + `}`,
	"CronJob":               `{"spec": {"schedule": "@daily", "jobTemplate": {"spec": ` + jobSpec + `}}}`,
	"ReplicationController": `{"spec": {"selector": {"app": "a"}, "template": ` + podOf + `}}`,
	"HorizontalPodAutoscaler": `{"spec": {"maxReplicas": 1, ` +
		`"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}}}`,
	"Service": `{"spec": {"ports": [{"port": 80}]}}`,
	"Ingress": `{"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}}`,
	"PersistentVolumeClaim": `{"spec": {"accessModes": ["ReadWriteOnce"], ` +
		`"resources": {"requests": {"storage": "1Gi"}}}}`,
	"PersistentVolume": `{"spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, ` +
		`"hostPath": {"path": "/a"}}}`,
	"IngressClass": `{"spec": {"controller": "example.com/a"}}`, "StorageClass": `{"provisioner": "example.com/a"}`,
	"RuntimeClass": `{"handler": "a"}`, "EndpointSlice": `{"addressType": "IPv4", "endpoints": []}`,
	"RoleBinding": roleRef, "ClusterRoleBinding": roleRef,
}

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
	group, known := coreGroups[n.shortGroup]
	kind := schema.GroupVersionKind{Group: group, Version: n.version, Kind: n.kind}
	switch {
	case !known:
		return n, fmt.Errorf("the project has no kind %s in %s %s: create it by flyball create api; for a kind of "+
			"another project, name the package of its types by --external-api-path; the groups of Kubernetes are %s",
			n.kind, n.group, n.version, strings.Join(slices.Sorted(maps.Keys(coreGroups)), ", "))
	case !clientgoscheme.Scheme.Recognizes(kind):
		return n, fmt.Errorf("neither the project nor Kubernetes has a kind %s in %s %s: create one of your own by "+
			"flyball create api", n.kind, n.shortGroup, n.version)
	}
	n.external = "k8s.io/api/" + strings.TrimSuffix(n.shortGroup, ".authorization") + "/" + n.version
	n.group, n.core = group, true
	n.cluster = n.cluster || slices.Contains(clusterKinds, n.kind)
	return n, nil
}

// sample returns the smallest valid object in JSON, without metadata, if it is known.
func (n names) sample() string {
	if sample, known := samples[n.kind]; known && n.core {
		return sample
	}
	return "{}"
}
