package controllerruntime

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	peerconversion "sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/flyball-dev/flyball/manager/webhook/conversion"
)

// NewConversionHandler returns Flyball's conversion webhook in the place of conversion.NewWebhookHandler. Register it
// at /convert before a builder registers controller-runtime's:
//
//	mgr.GetWebhookServer().Register("/convert",
//		controllerruntime.NewConversionHandler(mgr.GetScheme(), mgr.GetConverterRegistry()))
//
// It converts the kinds that are in the scheme now, by their converter in the registry or else by the methods of their
// types. Errors name the object that they are about, metadata is copied before a conversion begins, and the context
// ends when the API server stops waiting.
func NewConversionHandler(scheme *runtime.Scheme, registry peerconversion.Registry) http.Handler {
	hook, known := conversion.New(scheme), map[schema.GroupKind]bool{}
	for kind := range scheme.AllKnownTypes() {
		if kind.Version == runtime.APIVersionInternal || known[kind.GroupKind()] {
			continue
		}
		known[kind.GroupKind()] = true
		_ = hook.Register(kind.GroupKind(), &converter{scheme, registry, kind}) // each kind once
	}
	return hook
}

// converter converts a kind by what the registry has for it at the time, or else by the methods of its types.
type converter struct {
	scheme   *runtime.Scheme
	registry peerconversion.Registry
	// kind is the kind in any version.
	kind schema.GroupVersionKind
}

// ConvertObject implements conversion.Converter.
func (c *converter) ConvertObject(ctx context.Context, src, dst runtime.Object) error {
	if registered, ok := c.registry.GetConverter(c.kind.GroupKind()); ok {
		return registered.ConvertObject(ctx, src, dst)
	}
	example, err := c.scheme.New(c.kind)
	if err != nil {
		return fmt.Errorf("make an object of %s: %w", c.kind, err)
	}
	byMethods, err := conversion.NewHubConverter(c.scheme, example)
	if err != nil {
		return err
	}
	return byMethods.ConvertObject(ctx, src, dst)
}
