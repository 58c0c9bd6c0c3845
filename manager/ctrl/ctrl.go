// Package ctrl gathers the common names of packages manager, builder and reconcile under the names that users of
// controller-runtime know, so that a simple program needs only one import:
//
//	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
//	err = (&WebReconciler{Client: mgr.GetClient()}).SetupWithManager(mgr)
//	err = mgr.Run(ctrl.SetupSignalHandler())
//
// Everything here is an alias of something elsewhere.
package ctrl

import (
	"context"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/kubeconfig"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/ctrl/log"
	"github.com/flyball-dev/flyball/reconcile"
)

// The types of packages manager, builder and reconcile that a controller needs. Manager is a pointer, so that functions
// take a ctrl.Manager as they do with controller-runtime.
type (
	Manager           = *manager.Manager
	Options           = manager.Options
	Builder           = builder.Builder
	WebhookBuilder    = builder.WebhookBuilder
	Object            = informer.Object
	Request           = reconcile.Request
	Result            = reconcile.Result
	Reconciler        = reconcile.Reconciler[reconcile.Request]
	ReconcilerFunc    = reconcile.Func[reconcile.Request]
	ControllerOptions = reconcile.Options[reconcile.Request]
)

// Names for types of apimachinery.
type (
	GroupVersion  = schema.GroupVersion
	GroupResource = schema.GroupResource
	TypeMeta      = metav1.TypeMeta
	ObjectMeta    = metav1.ObjectMeta
)

// NewManager is manager.New.
func NewManager(config *rest.Config, o Options) (Manager, error) { return manager.New(config, o) }

// NewControllerManagedBy is builder.ControllerManagedBy.
func NewControllerManagedBy(m Manager) *Builder { return builder.ControllerManagedBy(m) }

// NewWebhookManagedBy is builder.WebhookManagedBy.
func NewWebhookManagedBy(m Manager, object ...Object) *WebhookBuilder {
	return builder.WebhookManagedBy(m, object...)
}

// SetControllerReference is controllerutil.SetControllerReference.
func SetControllerReference(owner, obj metav1.Object, scheme *runtime.Scheme,
	options ...func(*metav1.OwnerReference),
) error {
	return controllerutil.SetControllerReference(owner, obj, scheme, options...)
}

// CreateOrUpdate is controllerutil.CreateOrUpdate.
func CreateOrUpdate(ctx context.Context, c client.Client, obj client.Object,
	mutate func() error,
) (controllerutil.OperationResult, error) {
	return controllerutil.CreateOrUpdate(ctx, c, obj, mutate)
}

// CreateOrPatch is controllerutil.CreateOrPatch.
func CreateOrPatch(ctx context.Context, c client.Client, obj client.Object,
	mutate func() error,
) (controllerutil.OperationResult, error) {
	return controllerutil.CreateOrPatch(ctx, c, obj, mutate)
}

// SetupSignalHandler returns a context that ends at the first SIGINT or SIGTERM; the second ends the process at once
// with status 1. It catches signals until the process ends; use manager.SetupSignals to stop earlier.
func SetupSignalHandler() context.Context {
	ctx, _ := manager.SetupSignals(context.Background())
	return ctx
}

// GetConfig returns the config of a cluster. It reads $KUBECONFIG, ~/.kube/config or the service account of this Pod,
// in this order.
//
// Errors: one line that names the file and the field.
func GetConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	return kubeconfig.Load(rules, nil, "")
}

// GetConfigOrDie is GetConfig for a program that cannot work without a config: it exits on an error.
func GetConfigOrDie() *rest.Config {
	config, err := GetConfig()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return config
}

// Log and SetLogger are log.Log and log.SetLogger.
var (
	Log       = log.Log
	SetLogger = log.SetLogger
)

// LoggerFrom is log.FromContext. During a reconcile the logger carries the controller, the key and the number of the
// reconcile.
func LoggerFrom(ctx context.Context, keysAndValues ...any) klog.Logger {
	return log.FromContext(ctx, keysAndValues...)
}

// LoggerInto is klog.NewContext.
func LoggerInto(ctx context.Context, logger klog.Logger) context.Context {
	return klog.NewContext(ctx, logger)
}
