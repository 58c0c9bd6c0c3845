package builtin

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/resource"
)

func lease() *resource.Definition {
	return &resource.Definition{
		GroupVersion: coordinationv1.SchemeGroupVersion, Kind: "Lease",
		Plural: "leases", Singular: "lease",
		Namespaced: true, CreateOnUpdate: true, NeedsResourceVersion: true,
		New:     func() runtime.Object { return &coordinationv1.Lease{} },
		NewList: func() runtime.Object { return &coordinationv1.LeaseList{} },

		Validate: check(validateLease),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			column("Holder", "string", coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"]),
			ageColumn(),
		},
		Row: cells(func(l *coordinationv1.Lease, now time.Time) []any {
			return []any{l.Name, ptr.Deref(l.Spec.HolderIdentity, ""), age(l.CreationTimestamp, now)}
		}),
	}
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/coordination/validation/validation.go ValidateLeaseSpec.
func validateLease(l *coordinationv1.Lease) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if s := l.Spec.LeaseDurationSeconds; s != nil && *s <= 0 {
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *s, "must be greater than 0"))
	}
	if n := l.Spec.LeaseTransitions; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(path.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
	}
	if ptr.Deref(l.Spec.PreferredHolder, "") != "" && ptr.Deref(l.Spec.Strategy, "") == "" {
		errs = append(errs, field.Forbidden(path.Child("preferredHolder"), "may only be specified if `strategy` is defined"))
	}
	return errs
}
