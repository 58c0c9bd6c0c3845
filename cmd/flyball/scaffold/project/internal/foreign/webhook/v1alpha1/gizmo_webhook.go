package v1alpha1

import (
	// flyball:admission
	"context"
	// flyball:end
	// flyball:validation
	"strings"
	// flyball:end

	// flyball:defaulting
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	// flyball:end
	// flyball:validation
	"k8s.io/apimachinery/pkg/util/validation/field"
	// flyball:end
	samplev1alpha1 "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/api/v1alpha1"

	"github.com/flyball-dev/flyball/manager/ctrl"
	// flyball:admission
	"github.com/flyball-dev/flyball/manager/webhook"
	// flyball:end
	// flyball:validation
	"github.com/flyball-dev/flyball/manager/webhook/admission"
	// flyball:end
)

// gizmoMessage is the annotation of Gizmos that the webhooks are about.
const gizmoMessage = "annotation.flyball.example/message"

// SetupGizmoWebhookWithManager adds the webhooks of Gizmo to a manager. Their markers say failurePolicy=ignore: while
// the manager is down, Gizmos are admitted without them. With fail, nobody could write a Gizmo then, and a manager that
// needs one, such as its own Pod, would not come back.
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

// +kubebuilder:webhook:path=/mutate-sample-flyball-example-v1alpha1-gizmo,mutating=true,
//   failurePolicy=ignore,sideEffects=None,groups="sample.flyball.example",resources=gizmos,verbs=create;update,
//   versions=v1alpha1,name=mgizmo-v1alpha1.annotation.flyball.example,admissionReviewVersions=v1

// GizmoDefaulter sets defaults of Gizmos that are created or updated.
type GizmoDefaulter struct{}

var _ webhook.Defaulter[*samplev1alpha1.Gizmo] = (*GizmoDefaulter)(nil)

// Default implements webhook.Defaulter. The API server stores what it makes of obj.
func (*GizmoDefaulter) Default(_ context.Context, obj *samplev1alpha1.Gizmo) error {
	if message, found := obj.Annotations[gizmoMessage]; found && message == "" {
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, gizmoMessage, "hello")
	}
	return nil
}

// flyball:end
// flyball:validation

// +kubebuilder:webhook:path=/validate-sample-flyball-example-v1alpha1-gizmo,mutating=false,
//   failurePolicy=ignore,sideEffects=None,groups="sample.flyball.example",resources=gizmos,verbs=create;update,
//   versions=v1alpha1,name=vgizmo-v1alpha1.annotation.flyball.example,admissionReviewVersions=v1

// GizmoValidator rejects Gizmos that are not valid.
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
	if message := obj.Annotations[gizmoMessage]; strings.TrimSpace(message) != message {
		path := field.NewPath("metadata", "annotations").Key(gizmoMessage)
		wrong = append(wrong, field.Invalid(path, message, "it has spaces around it"))
	}
	return wrong.ToAggregate()
}

// flyball:end
