package builtin

import (
	"context"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/operation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// The types of dynamic resource allocation are only stored: schedulers and drivers act on them. Validated are fields
// that may not change, and what the Go types declare. The further rules of the real server are left out: those about
// CEL expressions, names, counts, references to other parts of the object, and the choice of nodes.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/resource/validation/validation.go.

// declared validates a field by the rules that its Go type declares. old is nil for a new object.
func declared[T any](f verify.Field, name string, value, old *T,
	rules func(context.Context, operation.Operation, *field.Path, *T, *T) field.ErrorList,
) {
	op := operation.Operation{Type: operation.Create, Options: map[string]bool{"DRAPartitionableDevicesType": false}}
	if old != nil {
		op.Type = operation.Update
	}
	f.Add(rules(context.Background(), op, f.Path(name), value, old)...)
}

func resourceClaim() *resource.Definition {
	d := namespaced[resourcev1.ResourceClaim, resourcev1.ResourceClaimList](resourcev1.SchemeGroupVersion,
		"resourceclaims")
	withStatus(d)
	statusKeepsMetadata(d)
	d.DeleteReturnsObject = true
	d.Default = mutate(func(c *resourcev1.ResourceClaim) { defaultDevices(&c.Spec) })
	d.ValidateCreate = rules(func(f verify.Field, c *resourcev1.ResourceClaim) {
		declared(f, "spec", &c.Spec, nil, resourcev1.Validate_ResourceClaimSpec)
	})
	d.ValidateUpdate = fixed(verify.Field.Unchanged, "spec")
	d.ValidateStatusUpdate = updateRules(func(f verify.Field, c, old *resourcev1.ResourceClaim) {
		declared(f, "status", &c.Status, &old.Status, resourcev1.Validate_ResourceClaimStatus)
	})
	listed(d, func(c *resourcev1.ResourceClaim) []cell {
		var states []string
		add := func(state string, is bool) {
			if is {
				states = append(states, state)
			}
		}
		add("deleted", c.DeletionTimestamp != nil)
		add("pending", c.Status.Allocation == nil && c.DeletionTimestamp == nil)
		add("allocated", c.Status.Allocation != nil)
		add("reserved", c.Status.Allocation != nil && len(c.Status.ReservedFor) > 0)
		return []cell{column("State", "string", "A summary of the current state (allocated, pending, reserved, etc.).",
			strings.Join(states, ","))}
	})
	return d
}

func resourceClaimTemplate() *resource.Definition {
	d := namespaced[resourcev1.ResourceClaimTemplate, resourcev1.ResourceClaimTemplateList](
		resourcev1.SchemeGroupVersion, "resourceclaimtemplates")
	d.DeleteReturnsObject = true
	d.Default = mutate(func(t *resourcev1.ResourceClaimTemplate) { defaultDevices(&t.Spec.Spec) })
	d.Validate = rules(func(f verify.Field, t *resourcev1.ResourceClaimTemplate) {
		declared(f, "spec", &t.Spec, nil, resourcev1.Validate_ResourceClaimTemplateSpec)
	})
	d.ValidateUpdate = fixed(immutableShown, "spec")
	listed(d, func(*resourcev1.ResourceClaimTemplate) []cell { return nil })
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/resource/v1/defaults.go.
func defaultDevices(spec *resourcev1.ResourceClaimSpec) {
	set := func(mode *resourcev1.DeviceAllocationMode, count *int64) {
		setDefault(mode, resourcev1.DeviceAllocationModeExactCount)
		if *mode == resourcev1.DeviceAllocationModeExactCount {
			setDefault(count, 1)
		}
	}
	for i := range spec.Devices.Requests {
		r := &spec.Devices.Requests[i]
		if r.Exactly != nil {
			set(&r.Exactly.AllocationMode, &r.Exactly.Count)
		}
		for k := range r.FirstAvailable {
			set(&r.FirstAvailable[k].AllocationMode, &r.FirstAvailable[k].Count)
		}
	}
}

func deviceClass() *resource.Definition {
	d := typed[resourcev1.DeviceClass, resourcev1.DeviceClassList](resourcev1.SchemeGroupVersion, "deviceclasses")
	withGeneration(d, "Spec")
	d.DeleteReturnsObject = true
	d.Validate = rules(func(f verify.Field, c *resourcev1.DeviceClass) {
		declared(f, "spec", &c.Spec, nil, resourcev1.Validate_DeviceClassSpec)
	})
	listed(d, func(*resourcev1.DeviceClass) []cell { return nil })
	return d
}

func resourceSlice() *resource.Definition {
	d := typed[resourcev1.ResourceSlice, resourcev1.ResourceSliceList](resourcev1.SchemeGroupVersion, "resourceslices")
	withGeneration(d, "Spec")
	d.DeleteReturnsObject = true
	d.Default = mutate(func(s *resourcev1.ResourceSlice) {
		for i := range s.Spec.Devices {
			for k := range s.Spec.Devices[i].Taints {
				stampTaint(&s.Spec.Devices[i].Taints[k])
			}
		}
	})
	d.Validate = rules(func(f verify.Field, s *resourcev1.ResourceSlice) {
		declared(f, "spec", &s.Spec, nil, resourcev1.Validate_ResourceSliceSpec)
	})
	d.ValidateUpdate = fixed(verify.Field.Immutable, "spec.pool.name", "spec.driver", "spec.nodeName")
	d.Fields = selectableFields("spec.nodeName", "spec.driver", "spec.pool.name")
	listed(d, func(s *resourcev1.ResourceSlice) []cell {
		doc := resourcev1.ResourceSliceSpec{}.SwaggerDoc()
		return []cell{
			column("Node", "string", doc["nodeName"], ptr.Deref(s.Spec.NodeName, "")),
			column("Driver", "string", doc["driver"], s.Spec.Driver),
			column("Pool", "string", resourcev1.ResourcePool{}.SwaggerDoc()["name"], s.Spec.Pool.Name),
		}
	})
	return d
}

// stampTaint sets the time of a taint that has none.
func stampTaint(t *resourcev1.DeviceTaint) {
	if t.TimeAdded == nil {
		t.TimeAdded = ptr.To(metav1.NewTime(time.Now().Truncate(time.Second)))
	}
}

func deviceTaintRule() *resource.Definition {
	d := typed[resourcev1.DeviceTaintRule, resourcev1.DeviceTaintRuleList](resourcev1.SchemeGroupVersion,
		"devicetaintrules")
	withStatus(d)
	d.PrepareUpdate = carry(func(r, old *resourcev1.DeviceTaintRule) {
		r.Status = old.Status
		now, was := &r.Spec.Taint, &old.Spec.Taint
		if now.Effect != was.Effect && now.TimeAdded.Equal(was.TimeAdded) {
			now.TimeAdded = nil
			stampTaint(now)
		}
	})
	withGeneration(d, "Spec")
	statusKeepsMetadata(d)
	d.NeedsResourceVersion = true
	d.Default = mutate(func(r *resourcev1.DeviceTaintRule) { stampTaint(&r.Spec.Taint) })
	d.Validate = rules(func(f verify.Field, r *resourcev1.DeviceTaintRule) {
		declared(f, "spec", &r.Spec, nil, resourcev1.Validate_DeviceTaintRuleSpec)
	})
	d.ValidateStatusUpdate = updateRules(func(f verify.Field, r, _ *resourcev1.DeviceTaintRule) {
		f.Conditions("status.conditions", r.Status.Conditions)
	})
	printed(d, func(r *resourcev1.DeviceTaintRule, now time.Time) []cell {
		doc, t, added := resourcev1.DeviceTaint{}.SwaggerDoc(), &r.Spec.Taint, ""
		if t.TimeAdded != nil {
			added = resource.Age(*t.TimeAdded, now)
		}
		return []cell{
			nameColumn(r.Name), column("Key", "string", doc["key"], t.Key),
			column("Value", "string", doc["value"], t.Value),
			column("Effect", "string", doc["effect"], string(t.Effect)),
			column("TimeAdded", "string", doc["timeAdded"], added), ageColumn(r.CreationTimestamp, now),
		}
	})
	return d
}
