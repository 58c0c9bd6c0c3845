package ctrl_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/manager/webhook"
	"github.com/flyball-dev/flyball/manager/webhook/admission"
)

// ConfigMaps refuses changes of ConfigMaps that are labelled as final.
type ConfigMaps struct{}

var _ webhook.Validator[*corev1.ConfigMap] = ConfigMaps{}

// ValidateCreate implements webhook.Validator.
func (ConfigMaps) ValidateCreate(context.Context, *corev1.ConfigMap) (admission.Warnings, error) {
	return nil, nil
}

// ValidateUpdate implements webhook.Validator.
func (ConfigMaps) ValidateUpdate(_ context.Context, old, _ *corev1.ConfigMap) (admission.Warnings, error) {
	if old.Labels["final"] == "true" {
		return nil, errors.New("it is final")
	}
	return nil, nil
}

// ValidateDelete implements webhook.Validator.
func (ConfigMaps) ValidateDelete(context.Context, *corev1.ConfigMap) (admission.Warnings, error) {
	return nil, nil
}

// A validating webhook, which the manager serves as soon as it runs.
func ExampleNewWebhookManagedBy() {
	mgr, err := ctrl.NewManager(&rest.Config{Host: "https://127.0.0.1:6443"}, ctrl.Options{
		Webhook: webhook.Options{CertDir: "/etc/webhook/certs"}, // where a Secret of cert-manager is mounted
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = ctrl.NewWebhookManagedBy(mgr).
		For(&corev1.ConfigMap{}).
		WithValidator(ConfigMaps{}).
		Complete()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mgr.GetWebhookServer().Registered())
	// Output: [/validate--v1-configmap]
}

// The manager keeps the certificate itself: the Secret, and the caBundle of the configuration.
func ExampleNewWebhookManagedBy_certificates() {
	options := ctrl.Options{Webhook: webhook.Options{Certificates: webhook.Certificates{
		Namespace:          "shop",
		Secret:             "shop-webhook-cert",
		Service:            "shop-webhook",
		ValidatingWebhooks: []string{"shop"},
	}}}
	mgr, err := ctrl.NewManager(&rest.Config{Host: "https://127.0.0.1:6443"}, options)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = ctrl.NewWebhookManagedBy(mgr, &corev1.ConfigMap{}).WithValidator(ConfigMaps{}).Complete()
	fmt.Println(mgr.GetWebhookServer().Registered(), err)
	// Output: [/validate--v1-configmap] <nil>
}
