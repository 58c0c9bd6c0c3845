// Command manager runs the controllers of sample-operator.
package main

import (
	// flyball:cluster
	"cmp"
	// flyball:end
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/inspect"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/manager/flags"
	"github.com/flyball-dev/flyball/manager/metrics"
	"github.com/flyball-dev/flyball/manager/webhook"
	// flyball:types

	samplev1alpha1 "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/api/v1alpha1"
	// flyball:end
	// flyball:controller
	"github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/internal/controller"
	// flyball:end
	// flyball:conversion
	samplev1beta7 "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/api/v1beta7"
	// flyball:end
	// flyball:webhook
	webhookv1alpha1 "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/internal/webhook/v1alpha1"
	// flyball:end
	// +kubebuilder:scaffold:imports
)

var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	// flyball:types
	utilruntime.Must(samplev1alpha1.AddToScheme(scheme))
	// flyball:end
	// flyball:conversion
	utilruntime.Must(samplev1beta7.AddToScheme(scheme))
	// flyball:end
	// +kubebuilder:scaffold:scheme
}

func main() {
	f := flags.New("sample-operator")
	f.Port = 8081                              // health and metrics, on loopback
	f.LeaderElection.Enabled = false           // --leader-elect turns it on
	f.Inspect = inspect.New(inspect.Options{}) // flyball trace and flyball top read it, with --inspect-address
	f.AddFlags(pflag.CommandLine)
	hooks := webhook.Options{}
	pflag.StringVar(&hooks.CertDir, "webhook-cert-path", "",
		"the folder of tls.crt and tls.key, with which webhooks are served; empty means that the manager makes them")
	pflag.IntVar(&hooks.Port, "webhook-port", webhook.DefaultPort,
		"the port of the webhooks; negative means not to serve them")
	pflag.Usage = func() { // for --help, and for an unknown flag
		pflag.PrintDefaults()
		fmt.Fprintln(os.Stderr, "In a Pod, the flags come from config/manager/manager.yaml and its patches, "+
			"such as those in config/default.")
	}
	pflag.Parse()
	err := f.Validate()
	if pflag.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q; the flags are listed by --help", pflag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	f.StartLogging(os.Stderr)
	setupLog := klog.Background().WithName("setup")

	config, err := f.RESTConfig()
	if err != nil {
		setupLog.Error(err, "Failed to find the cluster")
		os.Exit(1)
	}
	options := f.ManagerOptions(metrics.New())
	hooks.Host = f.BindAddress // loopback, unless --bind-address says otherwise
	options.Scheme, options.Webhook = scheme, hooks
	// flyball:webhook
	if hooks.CertDir == "" && hooks.Port >= 0 {
		options.Webhook.Certificates = webhook.Certificates{ // the manager keeps the certificate itself
			Namespace: "sample-operator-system", Secret: "sample-operator-webhook-certificate",
			Service:            "sample-operator-webhook-service",
			MutatingWebhooks:   []string{"sample-operator-mutating-webhook-configuration"},
			ValidatingWebhooks: []string{"sample-operator-validating-webhook-configuration"},
		}
	}
	// flyball:end
	// flyball:conversion
	kept := &options.Webhook.Certificates
	kept.CustomResourceDefinitions = append(kept.CustomResourceDefinitions, "gizmos.sample.flyball.example")
	// flyball:end
	// +kubebuilder:scaffold:options
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		setupLog.Error(err, "Failed to create the manager")
		os.Exit(1)
	}

	// flyball:controller
	if err := (&controller.GizmoReconciler{
		Client:   mgr.GetClient(),
		Recorder: mgr.GetEventRecorderFor("gizmo-controller"),
	}).SetupWithManager(mgr); err != nil {
		setupLog.Error(err, "Failed to create the controller", "controller", "gizmo")
		os.Exit(1)
	}
	// flyball:end
	// flyball:webhook
	if err := webhookv1alpha1.SetupGizmoWebhookWithManager(mgr); err != nil {
		setupLog.Error(err, "Failed to create the webhooks", "webhook", "gizmo")
		os.Exit(1)
	}
	// flyball:end
	// +kubebuilder:scaffold:builder

	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		setupLog.Error(err, "Failed to run the manager")
		os.Exit(1)
	}
}

// flyball:cluster

// operatorNamespace returns the namespace of the manager.
func operatorNamespace() string { return cmp.Or(os.Getenv("POD_NAMESPACE"), "sample-operator-system") }

// flyball:end
// flyball:sample

var _ = operatorNamespace // for kinds in no namespace, of which this operator has none

// flyball:end
