package builtin

import (
	"time"

	migrationv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// storageVersionMigration is only stored: a controller of kube-controller-manager rewrites the objects.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/storagemigration/validation/validation.go.
func storageVersionMigration() *resource.Definition {
	d := typed[migrationv1.StorageVersionMigration, migrationv1.StorageVersionMigrationList](
		migrationv1.SchemeGroupVersion, "storageversionmigrations")
	withStatus(d)
	statusKeepsMetadata(d)
	d.NeedsResourceVersion = true
	d.Validate = rules(func(f verify.Field, m *migrationv1.StorageVersionMigration) {
		name, group := m.Spec.Resource.Resource, m.Spec.Resource.Group
		f.Require("spec.resource.resource", name != "", "resource is required to be set")
		f.MatchIfSet("spec.resource.resource", name, verify.Joined(validation.IsDNS1035Label))
		f.MatchIfSet("spec.resource.group", group, verify.Joined(validation.IsDNS1123Subdomain))
	})
	d.ValidateUpdate = fixed(immutableShown, "spec")
	d.ValidateStatusUpdate = updateRules(validateMigrationStatus)
	printed(d, func(m *migrationv1.StorageVersionMigration, _ time.Time) []cell {
		state, name := "Unknown", nameColumn(m.Name)
		name.format = ""
		for _, c := range m.Status.Conditions {
			switch migrationv1.MigrationConditionType(c.Type) {
			case migrationv1.MigrationRunning, migrationv1.MigrationFailed, migrationv1.MigrationSucceeded:
				if c.Status == metav1.ConditionTrue {
					state = c.Type
				}
			}
		}
		return []cell{
			name, column("Resource", "string", "GroupResource to migrate", m.Spec.Resource.String()),
			column("Status", "string", "Status of the migration", state),
		}
	})
	return d
}

func validateMigrationStatus(f verify.Field, m, old *migrationv1.StorageVersionMigration) {
	f = f.Child("status")
	now, was := m.Status.ResourceVersion, old.Status.ResourceVersion
	if now != "" {
		if _, err := resourceversion.CompareResourceVersion(now, now); err != nil {
			f.Reject("resourceVersion", true, now, err.Error())
		}
	}
	f.Conditions("conditions", m.Status.Conditions)
	f.Reject("resourceVersion", was != "" && was != now, now, "field is immutable")
	is := func(m *migrationv1.StorageVersionMigration, kind migrationv1.MigrationConditionType) bool {
		return meta.IsStatusConditionTrue(m.Status.Conditions, string(kind))
	}
	reject := func(bad bool, problem string) {
		if bad {
			f.Reject("conditions", true, shown(m.Status.Conditions), problem)
		}
	}
	succeeded, failed := migrationv1.MigrationSucceeded, migrationv1.MigrationFailed
	reject(is(m, succeeded) && is(m, failed), "Both success and failed conditions cannot be true at the same time")
	reject(is(old, succeeded) && !is(m, succeeded), "Success condition cannot be set to false once it is true")
	reject(is(old, failed) && !is(m, failed), "Failed condition cannot be set to false once it is true")
}
