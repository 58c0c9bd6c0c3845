package builtin

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
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
	d.Validate = check(validateNamespace)
	d.ValidateStatusUpdate = compare(validateNamespaceStatus)
	d.PrepareDelete = prepare(func(ns *corev1.Namespace) { ns.Status.Phase = corev1.NamespaceTerminating })
	d.Finalizing = func(obj runtime.Object) bool { return len(obj.(*corev1.Namespace).Spec.Finalizers) > 0 }
	d.Fields = selectable(func(ns *corev1.Namespace) fields.Set {
		return fields.Set{"status.phase": string(ns.Status.Phase)}
	})
	printed(d, func(ns *corev1.Namespace, now time.Time) []cell {
		return []cell{
			nameColumn(ns.Name),
			column("Status", "string", "The status of the namespace", string(ns.Status.Phase)),
			ageColumn(ns.CreationTimestamp, now),
		}
	})
	d.Subresources = map[string]resource.Subresource{"finalize": namespaceFinalize()}
	return d
}

// defaultNamespace sets a label with the name, so that selectors can select namespaces by name.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/v1/defaults.go SetDefaults_Namespace.
func defaultNamespace(ns *corev1.Namespace) {
	setDefault(&ns.Status.Phase, corev1.NamespaceActive)
	if ns.Name != "" {
		metav1.SetMetaDataLabel(&ns.ObjectMeta, corev1.LabelMetadataName, ns.Name)
	}
}

// prepareNamespace adds the finalizer that keeps a deleted namespace until it is empty. It repeats the defaults,
// because a generated name is known only now.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/core/namespace/strategy.go PrepareForCreate, Canonicalize.
func prepareNamespace(ns *corev1.Namespace) {
	ns.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	if !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		ns.Spec.Finalizers = append(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
	}
	defaultNamespace(ns)
}

func validateNamespace(ns *corev1.Namespace) (errs field.ErrorList) {
	for _, f := range ns.Spec.Finalizers {
		errs = append(errs, qualifiedName(string(f), field.NewPath("spec", "finalizers"))...)
	}
	return errs
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidateNamespaceStatusUpdate.
func validateNamespaceStatus(ns, _ *corev1.Namespace) field.ErrorList {
	path := field.NewPath("status", "Phase")
	if ns.DeletionTimestamp == nil && ns.Status.Phase != corev1.NamespaceActive {
		return field.ErrorList{
			field.Invalid(path, ns.Status.Phase, "may only be 'Active' if `deletionTimestamp` is empty"),
		}
	}
	if ns.DeletionTimestamp != nil && ns.Status.Phase != corev1.NamespaceTerminating {
		return field.ErrorList{
			field.Invalid(path, ns.Status.Phase, "may only be 'Terminating' if `deletionTimestamp` is not empty"),
		}
	}
	return nil
}

// namespaceFinalize is the subresource with which the namespace controller reports that a namespace is empty. Only it
// writes spec.finalizers.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/core/namespace/strategy.go namespaceFinalizeStrategy.
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
	d.Validate = check(validateNode)
	d.ValidateUpdate = compare(validateNodeUpdate)
	d.Fields = selectable(func(n *corev1.Node) fields.Set {
		return fields.Set{"spec.unschedulable": strconv.FormatBool(n.Spec.Unschedulable)}
	})
	printed(d, nodeRow)
	return d
}

// defaultNode makes all of the node's capacity allocatable, unless the kubelet reserves some.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/v1/defaults.go SetDefaults_NodeStatus.
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

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidateNode, validateNodeTaints.
func validateNode(n *corev1.Node) (errs field.ErrorList) {
	path := field.NewPath("metadata", "taints") // the real path, although taints are in the spec
	seen := map[corev1.TaintEffect]map[string]bool{}
	for i := range n.Spec.Taints {
		t, p := &n.Spec.Taints[i], path.Index(i)
		errs = append(errs, metavalidation.ValidateLabelName(t.Key, p.Child("key"))...)
		errs = append(errs, invalid(p.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
		errs = append(errs, oneOf(p.Child("effect"), t.Effect,
			corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
		if seen[t.Effect][t.Key] {
			duplicate := field.Duplicate(p, shown(t))
			duplicate.Detail = "taints must be unique by key and effect pair"
			errs = append(errs, duplicate)
			continue
		}
		if seen[t.Effect] == nil {
			seen[t.Effect] = map[string]bool{}
		}
		seen[t.Effect][t.Key] = true
	}
	return errs
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidateNodeUpdate.
func validateNodeUpdate(n, old *corev1.Node) (errs field.ErrorList) {
	path := field.NewPath("spec")
	if len(old.Spec.PodCIDRs) > 0 && !slices.Equal(n.Spec.PodCIDRs, old.Spec.PodCIDRs) {
		errs = append(errs,
			field.Forbidden(path.Child("podCIDRs"), "node updates may not change podCIDR except from \"\" to valid"))
	}
	if was, now := old.Spec.ProviderID, n.Spec.ProviderID; was != "" && was != now {
		message := "field cannot be modified once set"
		if now == "" {
			message = "field cannot be cleared once set"
		}
		errs = append(errs, field.Invalid(path.Child("providerID"), nil, message))
	}
	return errs
}

func nodeRow(n *corev1.Node, now time.Time) []cell {
	info := n.Status.NodeInfo
	kernel := cmp.Or(info.KernelVersion, "<unknown>")
	if info.Architecture != "" {
		kernel += " (" + info.Architecture + ")"
	}
	doc, addresses := corev1.NodeSystemInfo{}.SwaggerDoc(), corev1.NodeStatus{}.SwaggerDoc()["addresses"]
	return []cell{
		nameColumn(n.Name),
		column("Status", "string", "The status of the node", nodeStatus(n)),
		column("Roles", "string", "The roles of the node", orNone(strings.Join(nodeRoles(n), ","))),
		ageColumn(n.CreationTimestamp, now),
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
	d.Validate = check(validateLease)
	printed(d, func(l *coordinationv1.Lease, now time.Time) []cell {
		return []cell{
			nameColumn(l.Name),
			column("Holder", "string", coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"],
				ptr.Deref(l.Spec.HolderIdentity, "")),
			ageColumn(l.CreationTimestamp, now),
		}
	})
	return d
}

// dropCoordination clears the fields that only coordinated leader election uses, which is off by default.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/coordination/lease/strategy.go PrepareForUpdate.
func dropCoordination(l, old *coordinationv1.Lease) {
	if old.Spec.Strategy == nil {
		l.Spec.Strategy = nil
	}
	if old.Spec.PreferredHolder == nil {
		l.Spec.PreferredHolder = nil
	}
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/coordination/validation/validation.go ValidateLeaseSpec.
func validateLease(l *coordinationv1.Lease) (errs field.ErrorList) {
	path := field.NewPath("spec")
	if s := l.Spec.LeaseDurationSeconds; s != nil && *s <= 0 {
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *s, "must be greater than 0"))
	}
	if n := l.Spec.LeaseTransitions; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(path.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
	}
	return errs
}
