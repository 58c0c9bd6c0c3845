package builtin

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
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
