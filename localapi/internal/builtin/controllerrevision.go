package builtin

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

func controllerRevision() *resource.Definition {
	d := namespaced[appsv1.ControllerRevision, appsv1.ControllerRevisionList](appsv1.SchemeGroupVersion,
		"controllerrevisions")
	d.Validate = check(func(r *appsv1.ControllerRevision) field.ErrorList {
		errs := nonnegative(r.Revision, field.NewPath("revision"))
		if r.Data.Object == nil && len(r.Data.Raw) == 0 {
			errs = append(errs, field.Required(field.NewPath("data"), "data is mandatory"))
		}
		return errs
	})
	d.ValidateUpdate = compare(func(r, old *appsv1.ControllerRevision) field.ErrorList {
		return immutable(r.Data, old.Data, field.NewPath("data"))
	})
	printed(d, func(r *appsv1.ControllerRevision, now time.Time) []cell {
		return []cell{
			nameColumn(r.Name),
			column("Controller", "string", "Controller of the object", controllerName(r)),
			column("Revision", "string", appsv1.ControllerRevision{}.SwaggerDoc()["revision"], r.Revision),
			ageColumn(r.CreationTimestamp, now),
		}
	})
	return d
}

// controllerName prints the controller of an object like "statefulset.apps/web".
func controllerName(obj metav1.Object) string {
	ref := metav1.GetControllerOf(obj)
	if ref == nil {
		return "<none>"
	}
	gk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	return strings.ToLower(gk.String()) + "/" + ref.Name
}
