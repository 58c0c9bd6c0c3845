package builtin

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

func configMap() *resource.Definition {
	d := namespaced[corev1.ConfigMap, corev1.ConfigMapList](corev1.SchemeGroupVersion, "configmaps", "cm")
	d.Validate = check(validateConfigMap)
	d.ValidateUpdate = compare(validateConfigMapUpdate)
	printed(d, func(cm *corev1.ConfigMap, now time.Time) []cell {
		return []cell{
			nameColumn(cm.Name),
			column("Data", "string", corev1.ConfigMap{}.SwaggerDoc()["data"], int64(len(cm.Data)+len(cm.BinaryData))),
			ageColumn(cm.CreationTimestamp, now),
		}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidateConfigMap.
func validateConfigMap(cm *corev1.ConfigMap) (errs field.ErrorList) {
	size := 0
	for _, key := range sortedKeys(cm.Data) {
		path := field.NewPath("data").Key(key)
		errs = append(errs, invalid(path, key, validation.IsConfigMapKey(key))...)
		if _, ok := cm.BinaryData[key]; ok {
			errs = append(errs, field.Invalid(path, key, "duplicate of key present in binaryData"))
		}
		size += len(cm.Data[key])
	}
	for _, key := range sortedKeys(cm.BinaryData) {
		errs = append(errs, invalid(field.NewPath("binaryData").Key(key), key, validation.IsConfigMapKey(key))...)
		size += len(cm.BinaryData[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}
	return errs
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidateConfigMapUpdate.
func validateConfigMapUpdate(cm, old *corev1.ConfigMap) field.ErrorList {
	if old.Immutable == nil || !*old.Immutable {
		return nil
	}
	errs := staysImmutable(cm.Immutable)
	errs = append(errs, unchangedData(cm.Data, old.Data, "data")...)
	return append(errs, unchangedData(cm.BinaryData, old.BinaryData, "binaryData")...)
}

const immutableMessage = "field is immutable when `immutable` is set"

func staysImmutable(flag *bool) field.ErrorList {
	if flag == nil || !*flag {
		return field.ErrorList{field.Forbidden(field.NewPath("immutable"), immutableMessage)}
	}
	return nil
}

func unchangedData[V any](data, old map[string]V, name string) field.ErrorList {
	if len(data)+len(old) == 0 || reflect.DeepEqual(data, old) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath(name), immutableMessage)}
}

// sortedKeys makes the order of errors about a map deterministic.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
