package builtin

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
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
	d.Validate = rules(validateVolume)
	d.ValidateUpdate = updateRules(validateVolumeUpdate)
	d.Fields = selectable(func(v *corev1.PersistentVolume) fields.Set { return fields.Set{"name": v.Name} })
	listed(d, volumeRow)
	return d
}

// prepareVolumeStatus keeps the time of the last change of the phase.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/persistentvolume/strategy.go PrepareForUpdate.
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
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidatePersistentVolumeSpec.
func validateVolume(f verify.Field, v *corev1.PersistentVolume) {
	f, spec := f.Child("spec"), &v.Spec
	validateAccessModes(f, spec.AccessModes)
	f.Require("capacity", len(spec.Capacity) > 0, "")
	if _, ok := spec.Capacity[corev1.ResourceStorage]; !ok || len(spec.Capacity) > 1 {
		f.Add(field.NotSupported(f.Path("capacity"), spec.Capacity, []corev1.ResourceName{corev1.ResourceStorage}))
	}
	for _, name := range sortedKeys(spec.Capacity) {
		q := spec.Capacity[name]
		f.Child("capacity").Key(string(name)).Reject("", q.Sign() <= 0, q.String(), "must be greater than zero")
	}
	if p := spec.PersistentVolumeReclaimPolicy; p != "" {
		verify.Supported(f, "persistentVolumeReclaimPolicy", p, corev1.PersistentVolumeReclaimDelete,
			corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain)
	}
	f.Require("nodeAffinity.required", spec.NodeAffinity == nil || spec.NodeAffinity.Required != nil,
		"must specify required node constraints")
	validateVolumeSources(f, spec)
	f.MatchIfSet("storageClassName", spec.StorageClassName, validation.IsDNS1123Subdomain)
	verify.SupportedPointer(f, "volumeMode", spec.VolumeMode, corev1.PersistentVolumeBlock,
		corev1.PersistentVolumeFilesystem)
}

func validateAccessModes(f verify.Field, modes []corev1.PersistentVolumeAccessMode) {
	f.Require("accessModes", len(modes) > 0, "")
	others := false
	for _, mode := range modes {
		verify.Supported(f, "accessModes", mode, sortedKeys(accessModes)...)
		others = others || accessModes[mode] != "" && mode != corev1.ReadWriteOncePod
	}
	f.Forbid("accessModes", others && slices.Contains(modes, corev1.ReadWriteOncePod),
		"may not use ReadWriteOncePod with other access modes")
}

// validateVolumeSources requires exactly one source.
func validateVolumeSources(f verify.Field, spec *corev1.PersistentVolumeSpec) {
	sources := reflect.ValueOf(spec.PersistentVolumeSource)
	found := 0
	for i := range sources.NumField() {
		if sources.Field(i).IsNil() {
			continue
		}
		found++
		name, _, _ := strings.Cut(sources.Type().Field(i).Tag.Get("json"), ",")
		f.Forbid(name, found > 1, "may not specify more than 1 volume type")
	}
	f.Require("", found > 0, "must specify a volume type")
	if h := spec.HostPath; h != nil {
		f.Require("hostPath.path", h.Path != "", "")
		f.Forbid("persistentVolumeReclaimPolicy",
			h.Path == "/" && spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle,
			"may not be 'recycle' for a hostPath mount of '/'")
	}
	f.Require("nodeAffinity", spec.Local == nil || spec.NodeAffinity != nil, "Local volume requires node affinity")
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidatePersistentVolumeUpdate.
func validateVolumeUpdate(f verify.Field, v, old *corev1.PersistentVolume) {
	now, was := v.Spec.DeepCopy(), &old.Spec
	if was.CSI != nil && was.CSI.ControllerExpandSecretRef == nil && now.CSI != nil {
		now.CSI.ControllerExpandSecretRef = nil
	}
	if !equality.Semantic.DeepEqual(now.PersistentVolumeSource, was.PersistentVolumeSource) {
		f.Forbid("spec.persistentvolumesource", true, "spec.persistentvolumesource is immutable after creation\n"+
			shownDiff(was.PersistentVolumeSource, now.PersistentVolumeSource))
	}
	f.Immutable("volumeMode", now.VolumeMode, was.VolumeMode)
	if was.NodeAffinity != nil {
		f.Immutable("nodeAffinity", now.NodeAffinity, was.NodeAffinity)
	}
	f.Forbid("spec.volumeAttributesClassName",
		was.VolumeAttributesClassName != nil && now.VolumeAttributesClassName == nil,
		"update from non-nil value to nil is forbidden")
}

func volumeRow(v *corev1.PersistentVolume) []cell {
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
	d.Validate = rules(validateClaim)
	d.ValidateUpdate = updateRules(validateClaimUpdate)
	listed(d, claimRow)
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/v1/defaults.go SetDefaults_PersistentVolumeClaim.
func defaultClaim(c *corev1.PersistentVolumeClaim) {
	setDefault(&c.Status.Phase, corev1.ClaimPending)
	defaultClaimSpec(&c.Spec)
}

func defaultClaimSpec(spec *corev1.PersistentVolumeClaimSpec) {
	setDefaultPtr(&spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	roundToMilli(spec.Resources.Limits)
	roundToMilli(spec.Resources.Requests)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidatePersistentVolumeClaimSpec.
func validateClaim(f verify.Field, c *corev1.PersistentVolumeClaim) {
	f = f.Child("spec")
	f.Require("accessModes", len(c.Spec.AccessModes) > 0, "at least 1 access mode is required")
	for _, mode := range c.Spec.AccessModes {
		verify.Supported(f, "accessModes", mode, sortedKeys(accessModes)...)
	}
	q, ok := c.Spec.Resources.Requests[corev1.ResourceStorage]
	f.Require("resources[storage]", ok, "")
	f.Reject("resources[storage]", ok && q.Sign() <= 0, q.String(), "must be greater than zero")
}

// validateClaimUpdate allows a claim to be bound once, and a bound claim to grow.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidatePersistentVolumeClaimUpdate.
func validateClaimUpdate(f verify.Field, c, old *corev1.PersistentVolumeClaim) {
	now, was := c.Spec.DeepCopy(), old.Spec.DeepCopy()
	setDefault(&was.VolumeName, now.VolumeName)
	if c.Status.Phase == corev1.ClaimBound {
		if now.Resources.Requests != nil {
			now.Resources.Requests[corev1.ResourceStorage] = was.Resources.Requests[corev1.ResourceStorage]
		}
		now.VolumeAttributesClassName = was.VolumeAttributesClassName
	}
	if !equality.Semantic.DeepEqual(now, was) {
		f.Forbid("spec", true, "spec is immutable after creation except resources.requests and "+
			"volumeAttributesClassName for bound claims\n"+shownDiff(*was, *now))
	}
	size, before, have := c.Spec.Resources.Requests.Storage(), old.Spec.Resources.Requests.Storage(),
		old.Status.Capacity.Storage()
	f.Forbid("spec.resources.requests.storage", size.Cmp(*before) < 0 && size.Cmp(*have) <= 0,
		"field can not be less than status.capacity")
	f.Immutable("volumeMode", c.Spec.VolumeMode, old.Spec.VolumeMode)
}

// accessModes are the modes with their printed forms.
var accessModes = map[corev1.PersistentVolumeAccessMode]string{
	corev1.ReadWriteOnce: "RWO", corev1.ReadOnlyMany: "ROX", corev1.ReadWriteMany: "RWX",
	corev1.ReadWriteOncePod: "RWOP",
}

func claimRow(c *corev1.PersistentVolumeClaim) []cell {
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
		column("Status", "string", status["phase"], phase),
		column("Volume", "string", spec["volumeName"], c.Spec.VolumeName),
		column("Capacity", "string", status["capacity"], capacity),
		column("Access Modes", "string", status["accessModes"], modes),
		column("StorageClass", "string", "StorageClass of the pvc", ptr.Deref(c.Spec.StorageClassName, "")),
		column("VolumeAttributesClass", "string", "VolumeAttributesClass of the pvc",
			ptr.Deref(c.Spec.VolumeAttributesClassName, "<unset>")),
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
