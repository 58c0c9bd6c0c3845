package parts

import (
	"net/http"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/flyball-dev/flyball/interop/controllerruntime"
	ours "github.com/flyball-dev/flyball/manager/webhook/conversion"
)

// WebhookServer is the function in the place of webhook.NewServer; nil: controller-runtime's.
func WebhookServer() func(webhook.Options) webhook.Server {
	if os.Getenv(Env) != Webhooks {
		return nil
	}
	return func(o webhook.Options) webhook.Server {
		chosen(Webhooks)
		return controllerruntime.NewWebhookServer(o)
	}
}

// ConversionHandler is the function in the place of conversion.NewWebhookHandler; nil: controller-runtime's.
func ConversionHandler() func(*runtime.Scheme, conversion.Registry) http.Handler {
	if os.Getenv(Env) != Webhooks {
		return nil
	}
	return func(scheme *runtime.Scheme, registry conversion.Registry) http.Handler {
		chosen(Webhooks)
		return controllerruntime.NewConversionHandler(scheme, registry)
	}
}

// IsConvertible is the function in the place of conversion.IsConvertible; nil: controller-runtime's.
func IsConvertible() func(*runtime.Scheme, runtime.Object) (bool, error) {
	if os.Getenv(Env) != Webhooks {
		return nil
	}
	return ours.IsConvertible
}
