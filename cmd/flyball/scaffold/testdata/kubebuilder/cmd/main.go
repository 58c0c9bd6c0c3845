package main

import (
	"crypto/tls"
	"flag"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	shopv1 "example.com/moved/api/v1"
	"example.com/moved/internal/controller"
	webhookv1 "example.com/moved/internal/webhook/v1"
	// +kubebuilder:scaffold:imports
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(shopv1.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

var _ *certwatcher.CertWatcher // what flyball does not know

func main() {
	var metricsAddr, metricsCertPath, metricsCertName, metricsCertKey, webhookCertPath, probeAddr string
	var enableLeaderElection, secureMetrics bool
	var tlsOpts []func(*tls.Config)
	flag.StringVar(&metricsAddr, "metrics-bind-address", "0", "metrics")
	flag.StringVar(&metricsCertPath, "metrics-cert-path", "", "certificates")
	flag.StringVar(&metricsCertName, "metrics-cert-name", "tls.crt", "certificate")
	flag.StringVar(&metricsCertKey, "metrics-cert-key", "tls.key", "key")
	flag.StringVar(&webhookCertPath, "webhook-cert-path", "", "certificates")
	flag.StringVar(&probeAddr, "health-probe-bind-address", ":8081", "probes")
	flag.BoolVar(&enableLeaderElection, "leader-elect", false, "lease")
	flag.BoolVar(&secureMetrics, "metrics-secure", true, "TLS")
	opts := zap.Options{
		Development: true,
	}
	opts.BindFlags(flag.CommandLine)
	flag.Parse()

	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&opts)))

	webhookServerOptions := webhook.Options{
		TLSOpts: tlsOpts,
		CertDir: webhookCertPath,
	}
	webhookServer := webhook.NewServer(webhookServerOptions)

	// Metrics endpoint is enabled in config/default.
	metricsServerOptions := metricsserver.Options{
		BindAddress:   metricsAddr,
		SecureServing: secureMetrics,
		TLSOpts:       tlsOpts,
	}
	if secureMetrics {
		metricsServerOptions.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	if len(metricsCertPath) > 0 {
		metricsServerOptions.CertDir = metricsCertPath
		metricsServerOptions.CertName = metricsCertName
		metricsServerOptions.KeyName = metricsCertKey
	}

	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsServerOptions,
		WebhookServer:          webhookServer,
		HealthProbeBindAddress: probeAddr,
		LeaderElection:         enableLeaderElection,
		LeaderElectionID:       "80807133.example.com",
	})
	if err != nil {
		setupLog.Error(err, "No manager")
		os.Exit(1)
	}
	if err := (&controller.CartReconciler{
		Client: mgr.GetClient(),
		Scheme: mgr.GetScheme(),
	}).SetupWithManager(mgr); err != nil {
		setupLog.Error(err, "No controller")
		os.Exit(1)
	}
	if err := webhookv1.SetupCartWebhookWithManager(mgr); err != nil {
		setupLog.Error(err, "No webhook")
		os.Exit(1)
	}
	// +kubebuilder:scaffold:builder

	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		setupLog.Error(err, "No health")
		os.Exit(1)
	}
	if err := mgr.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		setupLog.Error(err, "No readiness")
		os.Exit(1)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		setupLog.Error(err, "No run")
		os.Exit(1)
	}
}
