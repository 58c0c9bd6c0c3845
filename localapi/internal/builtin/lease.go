package builtin

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

func lease() *resource.Definition {
	d := namespaced[coordinationv1.Lease, coordinationv1.LeaseList](coordinationv1.SchemeGroupVersion, "leases")
	d.CreateOnUpdate, d.NeedsResourceVersion = true, true
	d.PrepareCreate = prepare(func(l *coordinationv1.Lease) { dropCoordination(l, &coordinationv1.Lease{}) })
	d.PrepareUpdate = carry(dropCoordination)
	d.Validate = check(validateLease)
	printed(d, func(l *coordinationv1.Lease, now time.Time) []cell {
		return []cell{
			nameColumn(l.Name),
			column("Holder", "string", coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"],
				ptr.Deref(l.Spec.HolderIdentity, "")),
			ageColumn(l.CreationTimestamp, now),
		}
	})
	return d
}

// dropCoordination clears the fields that only coordinated leader election uses, which is off by default.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/coordination/lease/strategy.go PrepareForUpdate.
func dropCoordination(l, old *coordinationv1.Lease) {
	if old.Spec.Strategy == nil {
		l.Spec.Strategy = nil
	}
	if old.Spec.PreferredHolder == nil {
		l.Spec.PreferredHolder = nil
	}
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/coordination/validation/validation.go ValidateLeaseSpec.
func validateLease(l *coordinationv1.Lease) (errs field.ErrorList) {
	path := field.NewPath("spec")
	if s := l.Spec.LeaseDurationSeconds; s != nil && *s <= 0 {
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *s, "must be greater than 0"))
	}
	if n := l.Spec.LeaseTransitions; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(path.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
	}
	return errs
}
