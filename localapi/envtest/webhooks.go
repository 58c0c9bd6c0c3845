package envtest

import (
	"errors"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// WebhookInstallOptions name, in the other package, webhooks to install. This server calls none, so the options must be
// empty: otherwise a suite would pass without the checks that its webhooks make. Start sets none of the fields.
type WebhookInstallOptions struct {
	// Paths are files with webhook configurations, and directories of such files.
	Paths []string

	// MutatingWebhooks and ValidatingWebhooks are webhook configurations.
	MutatingWebhooks   []*admissionv1.MutatingWebhookConfiguration
	ValidatingWebhooks []*admissionv1.ValidatingWebhookConfiguration

	// IgnoreSchemeConvertible asks for conversion webhooks of types that the scheme does not have.
	IgnoreSchemeConvertible bool

	// The following fields control how webhooks are served and waited for. They are ignored.
	IgnoreErrorIfPathMissing     bool
	LocalServingHost             string
	LocalServingPort             int
	LocalServingCertDir          string
	LocalServingCAData           []byte
	LocalServingHostExternalName string
	MaxTime                      time.Duration
	PollInterval                 time.Duration
}

// validate returns an error if there are webhooks.
func (o *WebhookInstallOptions) validate() error {
	if len(o.Paths)+len(o.MutatingWebhooks)+len(o.ValidatingWebhooks) > 0 || o.IgnoreSchemeConvertible {
		return errors.New("WebhookInstallOptions: the embedded API calls no webhooks yet: it does not serve " +
			"admissionregistration.k8s.io; " +
			"leave them out, or run this suite on a cluster with UseExistingCluster and the package of " +
			"controller-runtime")
	}
	return nil
}
