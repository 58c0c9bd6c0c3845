package builtin

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

func namespace() *resource.Definition {
	d := typed[corev1.Namespace, corev1.NamespaceList](corev1.SchemeGroupVersion, "namespaces", "ns")
	withStatus(d)
	d.NoDeleteCollection = true
	d.ValidateName = apivalidation.ValidateNamespaceName
	d.Default = mutate(defaultNamespace)
	d.PrepareCreate = prepare(prepareNamespace)
	d.PrepareUpdate = carry(func(ns, old *corev1.Namespace) {
		ns.Spec.Finalizers, ns.Status = old.Spec.Finalizers, old.Status
	})
	d.Validate = rules(func(f verify.Field, ns *corev1.Namespace) {
		for _, finalizer := range ns.Spec.Finalizers {
			f.Match("spec.finalizers", string(finalizer), validation.IsQualifiedName)
		}
	})
	d.ValidateStatusUpdate = updateRules(validateNamespaceStatus)
	d.PrepareDelete = prepare(func(ns *corev1.Namespace) { ns.Status.Phase = corev1.NamespaceTerminating })
	d.Finalizing = func(obj runtime.Object) bool { return len(obj.(*corev1.Namespace).Spec.Finalizers) > 0 }
	d.Fields = selectableFields("status.phase")
	listed(d, func(ns *corev1.Namespace) []cell {
		return []cell{
			column("Status", "string", "The status of the namespace", string(ns.Status.Phase)),
		}
	})
	d.Subresources = map[string]resource.Subresource{"finalize": namespaceFinalize()}
	return d
}

// defaultNamespace sets a label with the name, so that selectors can select namespaces by name.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/v1/defaults.go SetDefaults_Namespace.
func defaultNamespace(ns *corev1.Namespace) {
	setDefault(&ns.Status.Phase, corev1.NamespaceActive)
	if ns.Name != "" {
		metav1.SetMetaDataLabel(&ns.ObjectMeta, corev1.LabelMetadataName, ns.Name)
	}
}

// prepareNamespace adds the finalizer that keeps a deleted namespace until it is empty. It repeats the defaults,
// because a generated name is known only now.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/namespace/strategy.go PrepareForCreate, Canonicalize.
func prepareNamespace(ns *corev1.Namespace) {
	ns.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	if !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		ns.Spec.Finalizers = append(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
	}
	defaultNamespace(ns)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidateNamespaceStatusUpdate.
func validateNamespaceStatus(f verify.Field, ns, _ *corev1.Namespace) {
	phase, deleted := ns.Status.Phase, ns.DeletionTimestamp != nil
	f.Reject("status.Phase", !deleted && phase != corev1.NamespaceActive, phase,
		"may only be 'Active' if `deletionTimestamp` is empty")
	f.Reject("status.Phase", deleted && phase != corev1.NamespaceTerminating, phase,
		"may only be 'Terminating' if `deletionTimestamp` is not empty")
}

// namespaceFinalize is the subresource with which the namespace controller reports that a namespace is empty. Only it
// writes spec.finalizers.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/namespace/strategy.go namespaceFinalizeStrategy.
func namespaceFinalize() resource.Subresource {
	return resource.Subresource{
		Kind:    corev1.SchemeGroupVersion.WithKind("Namespace"),
		New:     func() runtime.Object { return &corev1.Namespace{} },
		Verbs:   []string{"update"},
		Owns:    fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("status"))),
		Project: func(_ context.Context, obj runtime.Object) (runtime.Object, error) { return obj, nil },
		Merge: func(_ context.Context, obj, sub runtime.Object) error {
			ns, asked := obj.(*corev1.Namespace), sub.(*corev1.Namespace)
			ns.Spec.Finalizers = asked.Spec.Finalizers
			ns.ResourceVersion = asked.ResourceVersion
			return nil
		},
	}
}

// node does not set the taint node.kubernetes.io/not-ready on a new Node, as admission does in a cluster. There the
// node lifecycle controller removes it, and here no such controller runs.
func node() *resource.Definition {
	d := typed[corev1.Node, corev1.NodeList](corev1.SchemeGroupVersion, "nodes", "no")
	withStatus(d)
	d.PrepareCreate = nil // a kubelet creates its Node with a status
	d.Subresources = map[string]resource.Subresource{"proxy": nodeProxy()}
	d.Default = mutate(defaultNode)
	d.Validate = rules(validateNode)
	d.ValidateUpdate = updateRules(validateNodeUpdate)
	d.Fields = selectableFields("spec.unschedulable")
	listed(d, nodeRow)
	return d
}

// defaultNode makes all of the node's capacity allocatable, unless the kubelet reserves some.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/v1/defaults.go SetDefaults_NodeStatus.
func defaultNode(n *corev1.Node) {
	switch one, all := n.Spec.PodCIDR, n.Spec.PodCIDRs; { // as pkg/apis/core/v1/conversion.go keeps the two the same
	case one != "" && (len(all) == 0 || all[0] != one):
		n.Spec.PodCIDRs = []string{one}
	case one == "" && len(all) > 0:
		n.Spec.PodCIDR = all[0]
	}
	if n.Status.Allocatable == nil && n.Status.Capacity != nil {
		n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	}
	roundToMilli(n.Status.Capacity)
	roundToMilli(n.Status.Allocatable)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidateNode, validateNodeTaints.
func validateNode(f verify.Field, n *corev1.Node) {
	type key struct {
		effect corev1.TaintEffect
		key    string
	}
	seen := sets.New[key]()
	// metadata is the real path, although taints are in the spec.
	verify.Each(f, "metadata.taints", n.Spec.Taints, func(f verify.Field, t *corev1.Taint) {
		f.Add(metavalidation.ValidateLabelName(t.Key, f.Path("key"))...)
		f.Match("value", t.Value, validation.IsValidLabelValue)
		validateTaintEffect(f, t.Effect)
		if k := (key{t.Effect, t.Key}); seen.Has(k) {
			duplicate := field.Duplicate(f.Path(""), shown(t))
			duplicate.Detail = "taints must be unique by key and effect pair"
			f.Add(duplicate)
		} else {
			seen.Insert(k)
		}
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidateNodeUpdate.
func validateNodeUpdate(f verify.Field, n, old *corev1.Node) {
	f, was, now := f.Child("spec"), &old.Spec, &n.Spec
	f.Forbid("podCIDRs", len(was.PodCIDRs) > 0 && !slices.Equal(now.PodCIDRs, was.PodCIDRs),
		"node updates may not change podCIDR except from \"\" to valid")
	if was.ProviderID != "" {
		f.Reject("providerID", now.ProviderID == "", nil, "field cannot be cleared once set")
		f.Reject("providerID", now.ProviderID != "" && now.ProviderID != was.ProviderID, nil,
			"field cannot be modified once set")
	}
}

func nodeRow(n *corev1.Node) []cell {
	info := n.Status.NodeInfo
	kernel := cmp.Or(info.KernelVersion, "<unknown>")
	if info.Architecture != "" {
		kernel += " (" + info.Architecture + ")"
	}
	doc, addresses := corev1.NodeSystemInfo{}.SwaggerDoc(), corev1.NodeStatus{}.SwaggerDoc()["addresses"]
	return []cell{
		column("Status", "string", "The status of the node", nodeStatus(n)),
		column("Roles", "string", "The roles of the node", orNone(strings.Join(nodeRoles(n), ","))),
		ageCell,
		column("Version", "string", doc["kubeletVersion"], info.KubeletVersion),
		wideColumn("Internal-IP", "string", addresses, nodeAddress(n, corev1.NodeInternalIP)),
		wideColumn("External-IP", "string", addresses, nodeAddress(n, corev1.NodeExternalIP)),
		wideColumn("OS-Image", "string", doc["osImage"], cmp.Or(info.OSImage, "<unknown>")),
		wideColumn("Kernel-Version", "string", doc["kernelVersion"], kernel),
		wideColumn("Container-Runtime", "string", doc["containerRuntimeVersion"],
			cmp.Or(info.ContainerRuntimeVersion, "<unknown>")),
	}
}

func nodeStatus(n *corev1.Node) string {
	status := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		status = "NotReady"
		if c.Status == corev1.ConditionTrue {
			status = "Ready"
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

// nodeRoles returns the roles in the labels, sorted: node-role.kubernetes.io/<role>, and the older kubernetes.io/role.
func nodeRoles(n *corev1.Node) []string {
	roles := map[string]bool{}
	for k, v := range n.Labels {
		if role, ok := strings.CutPrefix(k, "node-role.kubernetes.io/"); ok && role != "" {
			roles[role] = true
		}
		if k == "kubernetes.io/role" && v != "" {
			roles[v] = true
		}
	}
	return slices.Sorted(maps.Keys(roles))
}

func nodeAddress(n *corev1.Node, kind corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return "<none>"
}

func lease() *resource.Definition {
	d := namespaced[coordinationv1.Lease, coordinationv1.LeaseList](coordinationv1.SchemeGroupVersion, "leases")
	d.CreateOnUpdate, d.NeedsResourceVersion = true, true
	d.PrepareCreate = prepare(func(l *coordinationv1.Lease) { dropCoordination(l, &coordinationv1.Lease{}) })
	d.PrepareUpdate = carry(dropCoordination)
	d.Validate = rules(func(f verify.Field, l *coordinationv1.Lease) {
		seconds, transitions := l.Spec.LeaseDurationSeconds, l.Spec.LeaseTransitions
		f.Reject("spec.leaseDurationSeconds", seconds != nil && *seconds <= 0, seconds, "must be greater than 0")
		f.Nonnegative("spec.leaseTransitions", replicasOf(transitions))
	})
	listed(d, func(l *coordinationv1.Lease) []cell {
		return []cell{
			column("Holder", "string", coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"],
				ptr.Deref(l.Spec.HolderIdentity, "")),
		}
	})
	return d
}

// dropCoordination clears the fields that only coordinated leader election uses, which is off by default.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/coordination/lease/strategy.go PrepareForUpdate.
func dropCoordination(l, old *coordinationv1.Lease) {
	if old.Spec.Strategy == nil {
		l.Spec.Strategy = nil
	}
	if old.Spec.PreferredHolder == nil {
		l.Spec.PreferredHolder = nil
	}
}
