package customresource

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
)

// deprecationWarning returns the warning for every request to a deprecated version, or "" if it is not deprecated.
//
// Source: k8s.io/apiextensions-apiserver pkg/apiserver/customresource_handler.go.
func deprecationWarning(v *apiextensionsv1.CustomResourceDefinitionVersion, kind schema.GroupVersionKind) string {
	switch {
	case !v.Deprecated:
		return ""
	case v.DeprecationWarning != nil:
		return *v.DeprecationWarning
	}
	return fmt.Sprintf("%s %s is deprecated", kind.GroupVersion(), kind.Kind)
}

// finalizerWarnings returns warnings about new finalizers without a domain.
//
// Source: k8s.io/apiextensions-apiserver pkg/registry/customresource/validator.go validateKubeFinalizerName.
func finalizerWarnings(obj, old runtime.Object) []string {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil
	}
	var before []string
	if old != nil {
		if o, err := meta.Accessor(old); err == nil {
			before = o.GetFinalizers()
		}
	}
	var all []string
	added := slices.DeleteFunc(slices.Clone(m.GetFinalizers()),
		func(f string) bool { return slices.Contains(before, f) })
	slices.Sort(added)
	standard := []string{
		metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents,
		string(corev1.FinalizerKubernetes),
	}
	for _, f := range slices.Compact(added) {
		for _, problem := range utilvalidation.IsQualifiedName(f) {
			all = append(all, fmt.Sprintf("metadata.finalizers: %q: %s", f, problem))
		}
		switch {
		case strings.Contains(f, "/") || slices.Contains(standard, f):
		case strings.Contains(f, "."):
			all = append(all, fmt.Sprintf(
				"metadata.finalizers: %q: prefer a domain-qualified finalizer name including a path (/) to avoid "+
					"accidental conflicts with other finalizer writers", f,
			))
		default:
			all = append(all, fmt.Sprintf(
				"metadata.finalizers: %q: prefer a domain-qualified finalizer name to avoid accidental conflicts "+
					"with other finalizer writers", f,
			))
		}
	}
	return all
}
