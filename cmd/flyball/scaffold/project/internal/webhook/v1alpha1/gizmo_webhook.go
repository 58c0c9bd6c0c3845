package v1alpha1

import (
	// flyball:admission
	"context"
	// flyball:end
	// flyball:validation
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	// flyball:end

	"github.com/flyball-dev/flyball/manager/ctrl"
	// flyball:admission
	"github.com/flyball-dev/flyball/manager/webhook"
	// flyball:end
	// flyball:validation
	"github.com/flyball-dev/flyball/manager/webhook/admission"
	// flyball:end

	samplev1alpha1 "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/api/v1alpha1"
)

// SetupGizmoWebhookWithManager adds the webhooks of Gizmo to a manager.
func SetupGizmoWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr).For(&samplev1alpha1.Gizmo{}).
		// flyball:defaulting
		WithDefaulter(&GizmoDefaulter{}).
		// flyball:end
		// flyball:validation
		WithValidator(&GizmoValidator{}).
		// flyball:end
		Complete()
}

// flyball:defaulting

// +kubebuilder:webhook:path=/mutate-sample-flyball-example-v1alpha1-gizmo,mutating=true,failurePolicy=fail,sideEffects=None,groups=sample.flyball.example,resources=gizmos,verbs=create;update,versions=v1alpha1,name=mgizmo-v1alpha1.sample.flyball.example,admissionReviewVersions=v1

// GizmoDefaulter sets defaults of Gizmos that are created or updated.
type GizmoDefaulter struct{}

var _ webhook.Defaulter[*samplev1alpha1.Gizmo] = (*GizmoDefaulter)(nil)

// Default implements webhook.Defaulter. The API server stores what it makes of obj.
func (*GizmoDefaulter) Default(_ context.Context, obj *samplev1alpha1.Gizmo) error {
	if obj.Spec.Message == "" {
		obj.Spec.Message = "hello"
	}
	return nil
}

// flyball:end
// flyball:validation

// +kubebuilder:webhook:path=/validate-sample-flyball-example-v1alpha1-gizmo,mutating=false,failurePolicy=fail,sideEffects=None,groups=sample.flyball.example,resources=gizmos,verbs=create;update,versions=v1alpha1,name=vgizmo-v1alpha1.sample.flyball.example,admissionReviewVersions=v1

// GizmoValidator rejects Gizmos that are not valid. Rules about one object alone are better written as markers
// +kubebuilder:validation in the types: the API server then checks them by itself.
type GizmoValidator struct{}

var _ webhook.Validator[*samplev1alpha1.Gizmo] = (*GizmoValidator)(nil)

// ValidateCreate implements webhook.Validator.
func (*GizmoValidator) ValidateCreate(_ context.Context, obj *samplev1alpha1.Gizmo) (admission.Warnings, error) {
	return nil, validateGizmo(obj)
}

// ValidateUpdate implements webhook.Validator.
func (*GizmoValidator) ValidateUpdate(_ context.Context, _, obj *samplev1alpha1.Gizmo) (admission.Warnings, error) {
	return nil, validateGizmo(obj)
}

// ValidateDelete implements webhook.Validator. To be called, it needs the verb delete in the marker above.
func (*GizmoValidator) ValidateDelete(context.Context, *samplev1alpha1.Gizmo) (admission.Warnings, error) {
	return nil, nil
}

func validateGizmo(obj *samplev1alpha1.Gizmo) error {
	var wrong field.ErrorList
	if message := obj.Spec.Message; strings.TrimSpace(message) != message {
		wrong = append(wrong, field.Invalid(field.NewPath("spec", "message"), message, "it has spaces around it"))
	}
	return wrong.ToAggregate()
}

// flyball:end
