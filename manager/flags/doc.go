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
// The defaults are safe: health and metrics are served on loopback. On other addresses they are served by TLS, and
// metrics only to users that the API server allows.
package flags
