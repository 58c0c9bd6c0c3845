package builtin

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// persistentVolume does not add the finalizer kubernetes.io/pv-protection, as admission does in a cluster, because no
// controller here would remove it.
func persistentVolume() *resource.Definition {
	d := typed[corev1.PersistentVolume, corev1.PersistentVolumeList](corev1.SchemeGroupVersion, "persistentvolumes",
		"pv")
	withStatus(d)
	d.DeleteReturnsObject = true
	d.Default = mutate(func(v *corev1.PersistentVolume) {
		setDefault(&v.Status.Phase, corev1.VolumePending)
		setDefault(&v.Spec.PersistentVolumeReclaimPolicy, corev1.PersistentVolumeReclaimRetain)
		setDefaultPtr(&v.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		if v.Spec.HostPath != nil {
			setDefaultPtr(&v.Spec.HostPath.Type, corev1.HostPathUnset)
		}
		roundToMilli(v.Spec.Capacity)
	})
	d.PrepareCreate = prepare(func(v *corev1.PersistentVolume) {
		v.Status = corev1.PersistentVolumeStatus{
			Phase:                   corev1.VolumePending,
			LastPhaseTransitionTime: ptr.To(metav1.Now()),
		}
	})
	d.PrepareStatusUpdate = carry(prepareVolumeStatus)
	d.Validate = check(validateVolume)
	d.ValidateUpdate = compare(validateVolumeUpdate)
	d.Fields = selectable(func(v *corev1.PersistentVolume) fields.Set { return fields.Set{"name": v.Name} })
	printed(d, volumeRow)
	return d
}

// prepareVolumeStatus keeps the time of the last change of the phase.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/core/persistentvolume/strategy.go PrepareForUpdate.
func prepareVolumeStatus(v, old *corev1.PersistentVolume) {
	v.Spec = old.Spec
	now, was := &v.Status, &old.Status
	switch same := now.Phase == was.Phase; {
	case same && now.LastPhaseTransitionTime == nil:
		now.LastPhaseTransitionTime = was.LastPhaseTransitionTime
	case !same &&
		(now.LastPhaseTransitionTime == nil || now.LastPhaseTransitionTime.Equal(was.LastPhaseTransitionTime)):
		now.LastPhaseTransitionTime = ptr.To(metav1.Now())
	}
}

// validateVolume covers what a controller depends on. It does not validate the parameters of the sources.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidatePersistentVolumeSpec.
func validateVolume(v *corev1.PersistentVolume) field.ErrorList {
	path, spec := field.NewPath("spec"), &v.Spec
	errs := validateAccessModes(spec.AccessModes, path.Child("accessModes"))
	capacity := path.Child("capacity")
	if len(spec.Capacity) == 0 {
		errs = append(errs, field.Required(capacity, ""))
	}
	if _, ok := spec.Capacity[corev1.ResourceStorage]; !ok || len(spec.Capacity) > 1 {
		errs = append(errs, field.NotSupported(capacity, spec.Capacity, []corev1.ResourceName{corev1.ResourceStorage}))
	}
	for _, name := range sortedKeys(spec.Capacity) {
		if q := spec.Capacity[name]; q.Sign() <= 0 {
			errs = append(errs, field.Invalid(capacity.Key(string(name)), q.String(), "must be greater than zero"))
		}
	}
	if p := spec.PersistentVolumeReclaimPolicy; p != "" {
		errs = append(errs, supported(path.Child("persistentVolumeReclaimPolicy"), p,
			corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle,
			corev1.PersistentVolumeReclaimRetain)...)
	}
	if n := spec.NodeAffinity; n != nil && n.Required == nil {
		errs = append(errs,
			field.Required(path.Child("nodeAffinity", "required"), "must specify required node constraints"))
	}
	errs = append(errs, validateVolumeSources(spec, path)...)
	errs = append(errs,
		optionalName(spec.StorageClassName, apivalidation.NameIsDNSSubdomain, path.Child("storageClassName"))...)
	if m := spec.VolumeMode; m != nil {
		errs = append(errs,
			supported(path.Child("volumeMode"), *m, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)...)
	}
	return errs
}

func validateAccessModes(modes []corev1.PersistentVolumeAccessMode, path *field.Path) (errs field.ErrorList) {
	if len(modes) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	others := false
	for _, mode := range modes {
		_, known := accessModes[mode]
		if !known {
			errs = append(errs, field.NotSupported(path, mode, sortedKeys(accessModes)))
		}
		others = others || known && mode != corev1.ReadWriteOncePod
	}
	if others && slices.Contains(modes, corev1.ReadWriteOncePod) {
		errs = append(errs, field.Forbidden(path, "may not use ReadWriteOncePod with other access modes"))
	}
	return errs
}

// validateVolumeSources requires exactly one source.
func validateVolumeSources(spec *corev1.PersistentVolumeSpec, path *field.Path) (errs field.ErrorList) {
	sources := reflect.ValueOf(spec.PersistentVolumeSource)
	found := 0
	for i := range sources.NumField() {
		if sources.Field(i).IsNil() {
			continue
		}
		if found++; found > 1 {
			name, _, _ := strings.Cut(sources.Type().Field(i).Tag.Get("json"), ",")
			errs = append(errs, field.Forbidden(path.Child(name), "may not specify more than 1 volume type"))
		}
	}
	if found == 0 {
		errs = append(errs, field.Required(path, "must specify a volume type"))
	}
	if h := spec.HostPath; h != nil {
		if h.Path == "" {
			errs = append(errs, field.Required(path.Child("hostPath", "path"), ""))
		}
		if h.Path == "/" && spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
			errs = append(errs, field.Forbidden(path.Child("persistentVolumeReclaimPolicy"),
				"may not be 'recycle' for a hostPath mount of '/'"))
		}
	}
	if spec.Local != nil && spec.NodeAffinity == nil {
		errs = append(errs, field.Required(path.Child("nodeAffinity"), "Local volume requires node affinity"))
	}
	return errs
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidatePersistentVolumeUpdate.
func validateVolumeUpdate(v, old *corev1.PersistentVolume) (errs field.ErrorList) {
	now, was := v.Spec.DeepCopy(), &old.Spec
	if was.CSI != nil && was.CSI.ControllerExpandSecretRef == nil && now.CSI != nil {
		now.CSI.ControllerExpandSecretRef = nil
	}
	if !equality.Semantic.DeepEqual(now.PersistentVolumeSource, was.PersistentVolumeSource) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "persistentvolumesource"), fmt.Sprintf(
			"spec.persistentvolumesource is immutable after creation\n%v", shownDiff(was.PersistentVolumeSource,
				now.PersistentVolumeSource))))
	}
	errs = append(errs, immutable(now.VolumeMode, was.VolumeMode, field.NewPath("volumeMode"))...)
	if was.NodeAffinity != nil {
		errs = append(errs, immutable(now.NodeAffinity, was.NodeAffinity, field.NewPath("nodeAffinity"))...)
	}
	if was.VolumeAttributesClassName != nil && now.VolumeAttributesClassName == nil {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "volumeAttributesClassName"),
			"update from non-nil value to nil is forbidden"))
	}
	return errs
}

func volumeRow(v *corev1.PersistentVolume, now time.Time) []cell {
	phase, claim := string(v.Status.Phase), ""
	if v.DeletionTimestamp != nil {
		phase = "Terminating"
	}
	if ref := v.Spec.ClaimRef; ref != nil {
		claim = ref.Namespace + "/" + ref.Name
	}
	class := v.Spec.StorageClassName
	if old, ok := v.Annotations[corev1.BetaStorageClassAnnotation]; ok {
		class = old
	}
	spec, status := corev1.PersistentVolumeSpec{}.SwaggerDoc(), corev1.PersistentVolumeStatus{}.SwaggerDoc()
	return []cell{
		nameColumn(v.Name),
		column("Capacity", "string", spec["capacity"], amount(v.Spec.Capacity[corev1.ResourceStorage])),
		column("Access Modes", "string", spec["accessModes"], accessModeList(v.Spec.AccessModes)),
		column("Reclaim Policy", "string", spec["persistentVolumeReclaimPolicy"],
			string(v.Spec.PersistentVolumeReclaimPolicy)),
		column("Status", "string", status["phase"], phase),
		column("Claim", "string", spec["claimRef"], claim),
		column("StorageClass", "string", "StorageClass of the pv", class),
		column("VolumeAttributesClass", "string", "VolumeAttributesClass of the pv",
			ptr.Deref(v.Spec.VolumeAttributesClassName, "<unset>")),
		column("Reason", "string", status["reason"], v.Status.Reason),
		ageColumn(v.CreationTimestamp, now),
		wideColumn("VolumeMode", "string", spec["volumeMode"], string(ptr.Deref(v.Spec.VolumeMode, "<unset>"))),
	}
}

// persistentVolumeClaim does not add the finalizer kubernetes.io/pvc-protection, as admission does in a cluster,
// because no controller here would remove it.
func persistentVolumeClaim() *resource.Definition {
	d := namespaced[corev1.PersistentVolumeClaim, corev1.PersistentVolumeClaimList](corev1.SchemeGroupVersion,
		"persistentvolumeclaims", "pvc")
	withStatus(d)
	d.DeleteReturnsObject = true
	d.Default = mutate(defaultClaim)
	d.PrepareCreate = prepare(func(c *corev1.PersistentVolumeClaim) {
		c.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
	})
	d.Validate = check(validateClaim)
	d.ValidateUpdate = compare(validateClaimUpdate)
	printed(d, claimRow)
	return d
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/v1/defaults.go SetDefaults_PersistentVolumeClaim.
func defaultClaim(c *corev1.PersistentVolumeClaim) {
	setDefault(&c.Status.Phase, corev1.ClaimPending)
	defaultClaimSpec(&c.Spec)
}

func defaultClaimSpec(spec *corev1.PersistentVolumeClaimSpec) {
	setDefaultPtr(&spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	roundToMilli(spec.Resources.Limits)
	roundToMilli(spec.Resources.Requests)
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidatePersistentVolumeClaimSpec.
func validateClaim(c *corev1.PersistentVolumeClaim) (errs field.ErrorList) {
	path := field.NewPath("spec")
	if len(c.Spec.AccessModes) == 0 {
		errs = append(errs, field.Required(path.Child("accessModes"), "at least 1 access mode is required"))
	}
	for _, mode := range c.Spec.AccessModes {
		if _, ok := accessModes[mode]; !ok {
			errs = append(errs, field.NotSupported(path.Child("accessModes"), mode, sortedKeys(accessModes)))
		}
	}
	storage := path.Child("resources").Key(string(corev1.ResourceStorage))
	if q, ok := c.Spec.Resources.Requests[corev1.ResourceStorage]; !ok {
		errs = append(errs, field.Required(storage, ""))
	} else if q.Sign() <= 0 {
		errs = append(errs, field.Invalid(storage, q.String(), "must be greater than zero"))
	}
	return errs
}

// validateClaimUpdate allows a claim to be bound once, and a bound claim to grow.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidatePersistentVolumeClaimUpdate.
func validateClaimUpdate(c, old *corev1.PersistentVolumeClaim) (errs field.ErrorList) {
	path := field.NewPath("spec")
	now, was := c.Spec.DeepCopy(), old.Spec.DeepCopy()
	setDefault(&was.VolumeName, now.VolumeName)
	if c.Status.Phase == corev1.ClaimBound {
		if now.Resources.Requests != nil {
			now.Resources.Requests[corev1.ResourceStorage] = was.Resources.Requests[corev1.ResourceStorage]
		}
		now.VolumeAttributesClassName = was.VolumeAttributesClassName
	}
	if !equality.Semantic.DeepEqual(now, was) {
		errs = append(errs, field.Forbidden(path, fmt.Sprintf(
			"spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "+
				"claims\n%v", shownDiff(*was, *now))))
	}
	size, before, have := c.Spec.Resources.Requests.Storage(), old.Spec.Resources.Requests.Storage(),
		old.Status.Capacity.Storage()
	if size.Cmp(*before) < 0 && size.Cmp(*have) <= 0 {
		errs = append(errs, field.Forbidden(path.Child("resources", "requests", "storage"),
			"field can not be less than status.capacity"))
	}
	return append(errs, immutable(c.Spec.VolumeMode, old.Spec.VolumeMode, field.NewPath("volumeMode"))...)
}

// accessModes are the modes with their printed forms.
var accessModes = map[corev1.PersistentVolumeAccessMode]string{
	corev1.ReadWriteOnce: "RWO", corev1.ReadOnlyMany: "ROX", corev1.ReadWriteMany: "RWX",
	corev1.ReadWriteOncePod: "RWOP",
}

func claimRow(c *corev1.PersistentVolumeClaim, now time.Time) []cell {
	phase, capacity, modes := string(c.Status.Phase), "", ""
	if c.DeletionTimestamp != nil {
		phase = "Terminating"
	}
	if c.Spec.VolumeName != "" {
		q := c.Status.Capacity[corev1.ResourceStorage]
		capacity, modes = q.String(), accessModeList(c.Status.AccessModes)
	}
	spec, status := corev1.PersistentVolumeClaimSpec{}.SwaggerDoc(), corev1.PersistentVolumeClaimStatus{}.SwaggerDoc()
	return []cell{
		nameColumn(c.Name),
		column("Status", "string", status["phase"], phase),
		column("Volume", "string", spec["volumeName"], c.Spec.VolumeName),
		column("Capacity", "string", status["capacity"], capacity),
		column("Access Modes", "string", status["accessModes"], modes),
		column("StorageClass", "string", "StorageClass of the pvc", ptr.Deref(c.Spec.StorageClassName, "")),
		column("VolumeAttributesClass", "string", "VolumeAttributesClass of the pvc",
			ptr.Deref(c.Spec.VolumeAttributesClassName, "<unset>")),
		ageColumn(c.CreationTimestamp, now),
		wideColumn("VolumeMode", "string", spec["volumeMode"], string(ptr.Deref(c.Spec.VolumeMode, "<unset>"))),
	}
}

func accessModeList(modes []corev1.PersistentVolumeAccessMode) string {
	var list []string
	for _, m := range []corev1.PersistentVolumeAccessMode{
		corev1.ReadWriteOnce, corev1.ReadOnlyMany,
		corev1.ReadWriteMany, corev1.ReadWriteOncePod,
	} {
		if slices.Contains(modes, m) {
			list = append(list, accessModes[m])
		}
	}
	return strings.Join(list, ",")
}
