// Package flags defines the command-line flags of a program that runs a manager, under kube-controller-manager's names:
//
//	f := flags.New("my-operator")
//	f.AddFlags(pflag.CommandLine)
//	pflag.Parse()
//	err := f.Validate()
//	defer f.StartLogging(os.Stderr)()
//	config, err := f.RESTConfig()
//	mgr, err := manager.New(config, f.ManagerOptions(metrics.New()))
//
// # Configuration file
//
// The values can also be in a file, which --config names, in the form that Kubernetes components share. The command
// line overrides the file, and the file overrides the defaults:
//
//	apiVersion: flyball.dev/v1alpha1
//	kind: ManagerConfiguration
//	clientConnection: {kubeconfig: "", contentType: application/json, qps: 50, burst: 100}
//	leaderElection: {leaderElect: true, leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 2s,
//	  resourceName: my-operator, resourceNamespace: my-system}
//	bindAddress: 0.0.0.0
//	port: 10257
//	tlsCertFile: /certs/tls.crt
//	tlsPrivateKeyFile: /certs/tls.key
//	insecureServing: false
//	enableProfiling: false
//	controllerShutdownTimeout: 10s
//	logging: {format: json, verbosity: 2}
//	featureGates: {Fast: true}
//
// [Flags.AddConfigField] adds fields for the flags of the program's own.
//
// # Defaults
//
// The defaults are safe: health and metrics are served on loopback. On other addresses they are served by TLS, and
// metrics only to users that the API server allows.
package flags
