package builtin

import (
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

func storageClass() *resource.Definition {
	d := typed[storagev1.StorageClass, storagev1.StorageClassList](storagev1.SchemeGroupVersion, "storageclasses", "sc")
	d.DeleteReturnsObject = true
	d.Default = mutate(func(c *storagev1.StorageClass) {
		setDefaultPtr(&c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
		setDefaultPtr(&c.VolumeBindingMode, storagev1.VolumeBindingImmediate)
	})
	d.Validate = check(validateStorageClass)
	d.ValidateUpdate = compare(func(c, old *storagev1.StorageClass) field.ErrorList {
		errs := unchanged(c.Parameters, old.Parameters, field.NewPath("parameters"))
		errs = append(errs, unchanged(c.Provisioner, old.Provisioner, field.NewPath("provisioner"))...)
		errs = append(errs, unchanged(c.ReclaimPolicy, old.ReclaimPolicy, field.NewPath("reclaimPolicy"))...)
		return append(errs,
			unchanged(c.VolumeBindingMode, old.VolumeBindingMode, field.NewPath("volumeBindingMode"))...)
	})
	printed(d, storageClassRow)
	return d
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/storage/validation/validation.go ValidateStorageClass.
func validateStorageClass(c *storagev1.StorageClass) (errs field.ErrorList) {
	if c.Provisioner == "" {
		errs = append(errs, field.Required(field.NewPath("provisioner"), ""))
	} else {
		errs = append(errs, qualifiedName(strings.ToLower(c.Provisioner), field.NewPath("provisioner"))...)
	}
	errs = append(errs, validateParameters(c.Parameters, field.NewPath("parameters"))...)
	if p := ptr.Deref(c.ReclaimPolicy, ""); p != "" {
		errs = append(errs, supported(field.NewPath("reclaimPolicy"), p, corev1.PersistentVolumeReclaimDelete,
			corev1.PersistentVolumeReclaimRetain)...)
	}
	if c.VolumeBindingMode == nil {
		errs = append(errs, field.Required(field.NewPath("volumeBindingMode"), ""))
	} else {
		errs = append(errs, supported(field.NewPath("volumeBindingMode"), *c.VolumeBindingMode,
			storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)...)
	}
	return append(errs, validateTopologies(c.AllowedTopologies, field.NewPath("allowedTopologies"))...)
}

func validateParameters(parameters map[string]string, path *field.Path) (errs field.ErrorList) {
	const most, largest = 512, 256 << 10
	if len(parameters) > most {
		return field.ErrorList{field.TooLong(path, "", most)}
	}
	size := 0
	for k, v := range parameters {
		if k == "" {
			errs = append(errs, field.Invalid(path, k, "field can not be empty."))
		}
		size += len(k) + len(v)
	}
	if size > largest {
		errs = append(errs, field.TooLong(path, "", largest))
	}
	return errs
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/storage/validation/validation.go validateAllowedTopologies.
func validateTopologies(terms []corev1.TopologySelectorTerm, path *field.Path) (errs field.ErrorList) {
	var before []map[string]sets.Set[string]
	for i, term := range terms {
		at := path.Index(i).Child("matchLabelExpressions")
		keys := map[string]sets.Set[string]{}
		for j, r := range term.MatchLabelExpressions {
			values := at.Index(j).Child("values")
			if len(r.Values) == 0 {
				errs = append(errs, field.Required(values, ""))
			}
			seen := sets.New[string]()
			for k, v := range r.Values {
				errs = append(errs, unique(seen, v, values.Index(k))...)
			}
			errs = append(errs, metavalidation.ValidateLabelName(r.Key, at.Index(j).Child("key"))...)
			if _, ok := keys[r.Key]; ok {
				errs = append(errs, field.Duplicate(at.Index(j).Child("key"), r.Key))
			}
			keys[r.Key] = seen
		}
		for _, b := range before {
			if reflect.DeepEqual(b, keys) {
				errs = append(errs, field.Duplicate(at, ""))
			}
		}
		before = append(before, keys)
	}
	return errs
}

func storageClassRow(c *storagev1.StorageClass, now time.Time) []cell {
	name, doc := c.Name, storagev1.StorageClass{}.SwaggerDoc()
	if c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
		name += " (default)"
	}
	return []cell{
		nameColumn(name),
		column("Provisioner", "string", doc["provisioner"], c.Provisioner),
		column("ReclaimPolicy", "string", doc["reclaimPolicy"],
			string(ptr.Deref(c.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete))),
		column("VolumeBindingMode", "string", doc["volumeBindingMode"],
			string(ptr.Deref(c.VolumeBindingMode, storagev1.VolumeBindingImmediate))),
		column("AllowVolumeExpansion", "string", doc["allowVolumeExpansion"], ptr.Deref(c.AllowVolumeExpansion, false)),
		ageColumn(c.CreationTimestamp, now),
	}
}
