package envtest

import (
	"errors"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// WebhookInstallOptions name webhooks to install, in the other package. The server calls none, so these must be empty: a suite
// that needs webhooks would else pass without what they check. Start sets none of the fields.
type WebhookInstallOptions struct {
	// Paths are directories and files with configurations of webhooks.
	Paths []string

	// MutatingWebhooks and ValidatingWebhooks are configurations of webhooks.
	MutatingWebhooks   []*admissionv1.MutatingWebhookConfiguration
	ValidatingWebhooks []*admissionv1.ValidatingWebhookConfiguration

	// IgnoreSchemeConvertible asks for conversion webhooks of types that the scheme does not have.
	IgnoreSchemeConvertible bool

	// These say how webhooks are served and waited for. They are ignored.
	IgnoreErrorIfPathMissing     bool
	LocalServingHost             string
	LocalServingPort             int
	LocalServingCertDir          string
	LocalServingCAData           []byte
	LocalServingHostExternalName string
	MaxTime                      time.Duration
	PollInterval                 time.Duration
}

// validate refuses webhooks.
func (o *WebhookInstallOptions) validate() error {
	if len(o.Paths)+len(o.MutatingWebhooks)+len(o.ValidatingWebhooks) > 0 || o.IgnoreSchemeConvertible {
		return errors.New("WebhookInstallOptions: the embedded API calls no webhooks yet: it does not serve admissionregistration.k8s.io; " +
			"leave them out, or run this suite on a cluster with UseExistingCluster and the package of controller-runtime")
	}
	return nil
}
