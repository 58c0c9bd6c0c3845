package builtin

import (
	"math"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// The types below are only stored: attachers, drivers and kubelets act on them.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/storage/validation/validation.go, for all rules of the file.

func volumeAttachment() *resource.Definition {
	d := typed[storagev1.VolumeAttachment, storagev1.VolumeAttachmentList](storagev1.SchemeGroupVersion,
		"volumeattachments")
	withStatus(d)
	statusKeepsMetadata(d)
	d.DeleteReturnsObject, d.NeedsResourceVersion = true, true
	d.Validate = rules(validateAttachment)
	d.ValidateUpdate = fixed(verify.Field.Unchanged, "spec")
	d.ValidateStatusUpdate = updateRules(func(f verify.Field, a, _ *storagev1.VolumeAttachment) {
		validateAttachment(f, a)
	})
	listed(d, func(a *storagev1.VolumeAttachment) []cell {
		doc := storagev1.VolumeAttachmentSpec{}.SwaggerDoc()
		return []cell{
			{name: "Attacher", kind: "string", format: "name", doc: doc["attacher"], value: a.Spec.Attacher},
			column("PV", "string", storagev1.VolumeAttachmentSource{}.SwaggerDoc()["persistentVolumeName"],
				ptr.Deref(a.Spec.Source.PersistentVolumeName, "")),
			column("Node", "string", doc["nodeName"], a.Spec.NodeName),
			column("Attached", "boolean", storagev1.VolumeAttachmentStatus{}.SwaggerDoc()["attached"],
				a.Status.Attached),
		}
	})
	return d
}

func validateAttachment(f verify.Field, a *storagev1.VolumeAttachment) {
	const both, largest = "must specify exactly one of inlineVolumeSpec and persistentVolumeName", 256 << 10
	inline, name := a.Spec.Source.InlineVolumeSpec, a.Spec.Source.PersistentVolumeName
	f.Require("spec.source", inline != nil || name != nil, both)
	f.Forbid("spec.source", inline != nil && name != nil, both)
	if inline != nil && name == nil {
		validateInlineVolume(f.Child("spec.source.inlineVolumeSpec"), inline)
	}
	f.Require("spec.source.persistentVolumeName", inline != nil || ptr.Deref(name, "-") != "",
		"must specify non empty persistentVolumeName")
	f.Match("spec.nodeName", a.Spec.NodeName, validation.IsDNS1123Subdomain)
	size := 0
	for k, v := range a.Status.AttachmentMetadata {
		size += len(k) + len(v)
	}
	f.Short("status.attachmentMetadata", size, largest)
	validateVolumeError(f.Child("status.attachError"), a.Status.AttachError)
	validateVolumeError(f.Child("status.detachError"), a.Status.DetachError)
	f.MatchPointer("spec.source.persistentVolumeName", name, validation.IsDNS1123Subdomain)
	driverName(f, "spec.attacher", a.Spec.Attacher, caselessSubdomain)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidatePersistentVolumeSpec.
func validateInlineVolume(f verify.Field, spec *corev1.PersistentVolumeSpec) {
	const inline = " in the context of inline volumes"
	const unset = "may not be specified" + inline
	f.Forbid("claimRef", spec.ClaimRef != nil, unset)
	f.Forbid("capacity", len(spec.Capacity) > 0, unset)
	f.Require("csi", spec.CSI != nil, "has to be specified"+inline)
	validateAccessModes(f, spec.AccessModes)
	p := spec.PersistentVolumeReclaimPolicy
	f.Forbid("persistentVolumeReclaimPolicy", p != "" && p != corev1.PersistentVolumeReclaimRetain,
		"may only be Retain"+inline)
	f.Forbid("nodeAffinity", spec.NodeAffinity != nil, unset)
	validateVolumeSources(f, spec)
	f.Forbid("storageClassName", spec.StorageClassName != "", unset)
	f.Forbid("volumeMode",
		ptr.Deref(spec.VolumeMode, corev1.PersistentVolumeFilesystem) != corev1.PersistentVolumeFilesystem,
		"may not specify volumeMode other than Filesystem"+inline)
}

func validateVolumeError(f verify.Field, e *storagev1.VolumeError) {
	if e != nil {
		f.Short("message", len(e.Message), 1024)
		code := ptr.Deref(e.ErrorCode, 0)
		f.Reject("errorCode", code < 0, code, validation.InclusiveRangeError(0, math.MaxInt32))
	}
}

// caselessSubdomain is for names of drivers that may have capital letters.
//
//lint:ignore SA1019 Kubernetes validates these names by it.
var caselessSubdomain = content.IsDNS1123SubdomainCaseless

// driverName requires the name of a driver that a rule accepts.
func driverName(f verify.Field, name, driver string, rule func(string) []string) {
	const longest = 63
	f.Short(name, len(driver), longest)
	f.RequireMatch(name, driver, rule)
}

func lowerSubdomain(name string) []string {
	return validation.IsDNS1123Subdomain(strings.ToLower(name))
}

func volumeAttributesClass() *resource.Definition {
	d := typed[storagev1.VolumeAttributesClass, storagev1.VolumeAttributesClassList](storagev1.SchemeGroupVersion,
		"volumeattributesclasses", "vac")
	d.DeleteReturnsObject = true
	d.Validate = rules(func(f verify.Field, c *storagev1.VolumeAttributesClass) {
		f.RequireMatch("driverName", strings.ToLower(c.DriverName), validation.IsQualifiedName)
		validateParameters(f, c.Parameters)
		f.Require("parameters", len(c.Parameters) > 0, "must contain at least one key/value pair")
	})
	d.ValidateUpdate = updateRules(func(f verify.Field, c, old *storagev1.VolumeAttributesClass) {
		f.Forbid("driverName", c.DriverName != old.DriverName, "updates to driverName are forbidden.")
		f.Forbid("parameters", !reflect.DeepEqual(c.Parameters, old.Parameters),
			"updates to parameters are forbidden.")
	})
	listed(d, func(c *storagev1.VolumeAttributesClass) []cell {
		return []cell{column("DriverName", "string", storagev1.VolumeAttributesClass{}.SwaggerDoc()["driverName"],
			c.DriverName)}
	})
	return d
}

func csiNode() *resource.Definition {
	d := typed[storagev1.CSINode, storagev1.CSINodeList](storagev1.SchemeGroupVersion, "csinodes")
	withStatus(d)
	d.PrepareStatusUpdate = carry(func(n, old *storagev1.CSINode) {
		n.Spec, n.Status = old.Spec, old.Status // its only field belongs to an alpha feature
	})
	statusKeepsMetadata(d)
	d.DeleteReturnsObject, d.NeedsResourceVersion = true, true
	d.Validate = rules(func(f verify.Field, n *storagev1.CSINode) {
		seen := sets.New[string]()
		verify.Each(f, "spec.drivers", n.Spec.Drivers, func(f verify.Field, d *storagev1.CSINodeDriver) {
			validateNodeDriver(f, d, seen)
		})
	})
	d.ValidateUpdate = updateRules(func(f verify.Field, n, old *storagev1.CSINode) {
		for _, was := range old.Spec.Drivers {
			for _, is := range n.Spec.Drivers {
				is.Allocatable, was.Allocatable = nil, nil
				if is.Name == was.Name && !reflect.DeepEqual(is, was) {
					f.Reject("spec.drivers", true, shown(is), apivalidation.FieldImmutableErrorMsg)
				}
			}
		}
	})
	listed(d, func(n *storagev1.CSINode) []cell {
		return []cell{column("Drivers", "integer",
			"Drivers indicates the number of CSI drivers registered on the node", int64(len(n.Spec.Drivers)))}
	})
	return d
}

func validateNodeDriver(f verify.Field, d *storagev1.CSINodeDriver, seen sets.Set[string]) {
	const longest = 256
	driverName(f, "name", d.Name, lowerSubdomain)
	f.Require("nodeID", d.NodeID != "", "")
	f.Rejectf("nodeID", len(d.NodeID) > longest, d.NodeID, "must be %d characters or less", longest)
	if d.Allocatable != nil {
		f.Nonnegative("allocatable.count", replicasOf(d.Allocatable.Count))
	}
	verify.Unique(f, "name", seen, d.Name)
	keys := sets.New[string]()
	for _, key := range d.TopologyKeys {
		f.Require("", key != "", "")
		verify.Unique(f, "", keys, key)
		f.Match("", key, validation.IsQualifiedName)
	}
}

func csiDriver() *resource.Definition {
	d := typed[storagev1.CSIDriver, storagev1.CSIDriverList](storagev1.SchemeGroupVersion, "csidrivers")
	withGeneration(d, "Spec")
	d.PrepareCreate = nil // a new driver has no generation
	d.DeleteReturnsObject, d.NeedsResourceVersion = true, true
	d.Default = mutate(func(d *storagev1.CSIDriver) {
		setDefaultPtr(&d.Spec.AttachRequired, true)
		setDefaultPtr(&d.Spec.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
		if len(d.Spec.VolumeLifecycleModes) == 0 {
			d.Spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
		}
		for _, p := range []**bool{
			&d.Spec.PodInfoOnMount, &d.Spec.StorageCapacity, &d.Spec.RequiresRepublish, &d.Spec.SELinuxMount,
			&d.Spec.PreventPodSchedulingIfMissing,
		} {
			setDefaultPtr(p, false)
		}
	})
	d.Validate = rules(validateDriver)
	d.ValidateUpdate = updateRules(func(f verify.Field, d, old *storagev1.CSIDriver) {
		f.Immutable("spec.attachedRequired", *d.Spec.AttachRequired, *old.Spec.AttachRequired)
		f.Immutable("spec.volumeLifecycleModes", d.Spec.VolumeLifecycleModes, old.Spec.VolumeLifecycleModes)
	})
	d.Warnings = driverWarnings
	listed(d, driverRow)
	return d
}

func validateDriver(f verify.Field, d *storagev1.CSIDriver) {
	const shortest, longest = 600, 1 << 32
	f, spec := f.Child("spec"), &d.Spec
	verify.Supported(f, "fsGroupPolicy", *spec.FSGroupPolicy, storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy,
		storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	audiences := sets.New[string]()
	verify.Each(f, "tokenRequests", spec.TokenRequests, func(f verify.Field, request *storagev1.TokenRequest) {
		if s := request.ExpirationSeconds; verify.Unique(f, "audience", audiences, request.Audience) && s != nil {
			f.Reject("expirationSeconds", *s < shortest, s, "may not specify a duration less than 10 minutes")
			f.Reject("expirationSeconds", *s > longest, s, "may not specify a duration larger than 2^32 seconds")
		}
	})
	for _, mode := range spec.VolumeLifecycleModes {
		verify.Supported(f, "volumeLifecycleModes", mode, storagev1.VolumeLifecyclePersistent,
			storagev1.VolumeLifecycleEphemeral)
	}
	period, in := spec.NodeAllocatableUpdatePeriodSeconds, spec.ServiceAccountTokenInSecrets
	f.Reject("nodeAllocatableUpdatePeriodSeconds", period != nil && *period < 10, period,
		"must be greater than or equal to 10 seconds")
	f.Reject("serviceAccountTokenInSecrets", in != nil && len(spec.TokenRequests) == 0, in,
		"serviceAccountTokenInSecrets is set but no tokenRequests are specified")
}

// Source: k8s.io/kubernetes v1.37.2 pkg/registry/storage/csidriver/strategy.go.
func driverWarnings(obj, old runtime.Object) []string {
	spec := &obj.(*storagev1.CSIDriver).Spec
	before, ok := old.(*storagev1.CSIDriver)
	if len(spec.TokenRequests) == 0 || spec.ServiceAccountTokenInSecrets != nil ||
		ok && reflect.DeepEqual(spec.TokenRequests, before.Spec.TokenRequests) {
		return nil
	}
	return []string{"spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to " +
		"prevent possible logging of tokens in volume attributes"}
}

func driverRow(d *storagev1.CSIDriver) []cell {
	doc, tokens := storagev1.CSIDriverSpec{}.SwaggerDoc(), "<unset>"
	var modes, audiences []string
	for _, mode := range d.Spec.VolumeLifecycleModes {
		modes = append(modes, string(mode))
	}
	for _, request := range d.Spec.TokenRequests {
		audiences = append(audiences, request.Audience)
	}
	if audiences != nil {
		tokens = strings.Join(audiences, ",")
	}
	return []cell{
		column("AttachRequired", "boolean", doc["attachRequired"], ptr.Deref(d.Spec.AttachRequired, true)),
		column("PodInfoOnMount", "boolean", doc["podInfoOnMount"], ptr.Deref(d.Spec.PodInfoOnMount, false)),
		column("StorageCapacity", "boolean", doc["storageCapacity"], ptr.Deref(d.Spec.StorageCapacity, false)),
		column("TokenRequests", "string", doc["tokenRequests"], tokens),
		column("RequiresRepublish", "boolean", doc["requiresRepublish"], ptr.Deref(d.Spec.RequiresRepublish, false)),
		column("Modes", "string", doc["volumeLifecycleModes"], orNone(strings.Join(modes, ","))),
	}
}

func csiStorageCapacity() *resource.Definition {
	d := namespaced[storagev1.CSIStorageCapacity, storagev1.CSIStorageCapacityList](storagev1.SchemeGroupVersion,
		"csistoragecapacities")
	d.NeedsResourceVersion = true
	d.Validate = rules(func(f verify.Field, c *storagev1.CSIStorageCapacity) {
		f.LabelSelector("nodeTopology", c.NodeTopology)
		f.Match("storageClassName", c.StorageClassName, validation.IsDNS1123Subdomain)
		if c.Capacity != nil {
			f.Reject("capacity", c.Capacity.Sign() < 0, c.Capacity.String(), apivalidation.IsNegativeErrorMsg)
		}
	})
	d.ValidateUpdate = fixed(verify.Field.Immutable, "nodeTopology", "storageClassName")
	return d
}
