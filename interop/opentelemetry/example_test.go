package opentelemetry_test

import (
	"context"
	"fmt"
	"log"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/inspect"
	"github.com/flyball-dev/flyball/interop/opentelemetry"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile"
)

// A manager whose reconciles become spans. Programs put an exporter of OTLP in the place of the one in memory.
func ExampleNew() {
	api, err := localapi.New(localapi.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer api.Close()
	ctx, stop := context.WithCancel(context.Background())
	greeting := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	if err := api.Seed(ctx, greeting); err != nil {
		log.Fatal(err)
	}

	memory := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(memory))
	inspector := inspect.New(inspect.Options{})
	mgr, err := ctrl.NewManager(api.RESTConfig(), ctrl.Options{Inspect: inspector})
	if err != nil {
		log.Fatal(err)
	}
	if err := mgr.Add(opentelemetry.New(inspector, provider, opentelemetry.Options{})); err != nil {
		log.Fatal(err)
	}

	greet := reconcile.Func[ctrl.Request](func(context.Context, ctrl.Request) (ctrl.Result, error) {
		stop()
		return ctrl.Result{}, nil
	})
	if err := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Named("greeter").Complete(greet); err != nil {
		log.Fatal(err)
	}
	if err := mgr.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(memory.GetSpans()[0].Name)
	// Output: reconcile greeter
}
