package builtin

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

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
