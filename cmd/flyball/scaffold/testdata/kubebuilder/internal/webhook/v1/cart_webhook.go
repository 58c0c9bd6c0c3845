package v1

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	shopv1 "example.com/moved/api/v1"
)

var cartlog = logf.Log.WithName("cart-resource")

func SetupCartWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &shopv1.Cart{}).WithValidator(&CartValidator{}).Complete()
}

type CartValidator struct{}

func (*CartValidator) ValidateCreate(_ context.Context, obj *shopv1.Cart) (admission.Warnings, error) {
	cartlog.Info("Validate", "name", obj.GetName())
	return nil, nil
}

func (*CartValidator) ValidateUpdate(_ context.Context, _, obj *shopv1.Cart) (admission.Warnings, error) {
	return nil, nil
}

func (*CartValidator) ValidateDelete(_ context.Context, obj *shopv1.Cart) (admission.Warnings, error) {
	return nil, nil
}
