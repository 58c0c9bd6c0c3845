package replicasets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/dump"
)

// SameTemplate reports whether two pod templates are equal, apart from the pod-template-hash label: the template of a
// Deployment does not have it.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, EqualIgnoreHash
func SameTemplate(a, b *corev1.PodTemplateSpec) bool {
	x, y := *a, *b
	x.Labels, y.Labels = withoutHash(a.Labels), withoutHash(b.Labels)
	return equality.Semantic.DeepEqual(&x, &y)
}

// Difference names the first field in which two pod templates differ, apart from the pod-template-hash label, as
// "spec.template.spec.containers[0].image". It does not name the values, which may be secret.
func Difference(a, b *corev1.PodTemplateSpec) string {
	x, y := *a, *b
	x.Labels, y.Labels = withoutHash(a.Labels), withoutHash(b.Labels)
	before, err1 := runtime.DefaultUnstructuredConverter.ToUnstructured(&x)
	now, err2 := runtime.DefaultUnstructuredConverter.ToUnstructured(&y)
	path := field.NewPath("spec", "template")
	if err := errors.Join(err1, err2); err != nil {
		return path.String()
	}
	if found := difference(path, before, now); found != nil {
		path = found
	}
	return path.String()
}

// difference returns the path of the first difference between two values of JSON below path; nil if there is none.
func difference(path *field.Path, a, b any) *field.Path {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			return path
		}
		keys := maps.Clone(x)
		maps.Copy(keys, y)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			at := path.Child(key)
			if strings.ContainsAny(key, "./") { // a label or an annotation
				at = path.Key(key)
			}
			if found := difference(at, x[key], y[key]); found != nil {
				return found
			}
		}
		return nil
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return path
		}
		for i := range x {
			if found := difference(path.Index(i), x[i], y[i]); found != nil {
				return found
			}
		}
		return nil
	}
	if !reflect.DeepEqual(a, b) {
		return path
	}
	return nil
}

// DeploymentTemplate returns the template of the Deployment that rs was created for.
func DeploymentTemplate(rs *appsv1.ReplicaSet) *corev1.PodTemplateSpec {
	t := rs.Spec.Template.DeepCopy()
	delete(t.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return t
}

// WithHash returns a copy of labels with the pod-template-hash label set.
func WithHash(labels map[string]string, hash string) map[string]string {
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	return labels
}

func withoutHash(labels map[string]string) map[string]string {
	return without(labels, appsv1.DefaultDeploymentUniqueLabelKey)
}

// without returns a copy of m that lacks the key, or m itself if the key is not in it.
func without(m map[string]string, key string) map[string]string {
	if _, ok := m[key]; !ok {
		return m
	}
	m = maps.Clone(m)
	delete(m, key)
	return m
}

// ComputeHash is the pod-template-hash of a template. The label distinguishes the pods of one ReplicaSet of a
// Deployment from those of the others, and the name of the ReplicaSet ends in it. The template must not carry the label
// yet.
//
// The hash is computed from the printed form of the Go struct, so it depends on the fields that are known to the
// version of k8s.io/api in use: two builds of a controller may compute different hashes. Only names depend on that,
// because a ReplicaSet is recognized by its template and not by its hash.
//
// collisionCount is the Deployment's status.collisionCount: another number gives another hash.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, ComputeHash
func ComputeHash(template *corev1.PodTemplateSpec, collisionCount *int32) string {
	hasher := fnv.New32a()
	fmt.Fprintf(hasher, "%v", dump.ForHash(*template))
	if collisionCount != nil {
		// The original writes the four bytes of the number into a buffer of eight, and hashes all eight.
		var count [8]byte
		binary.LittleEndian.PutUint32(count[:], uint32(*collisionCount))
		hasher.Write(count[:])
	}
	return rand.SafeEncodeString(fmt.Sprint(hasher.Sum32()))
}

// Name joins the name of a Deployment and a hash. If the result would be too long, the name of the Deployment is cut.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, generateReplicaSetName
func Name(deployment, hash string) string {
	room := validation.DNS1123SubdomainMaxLength - len("-") - len(hash)
	if len(deployment) > room && room > 0 {
		deployment = deployment[:room]
	}
	return deployment + "-" + hash
}
