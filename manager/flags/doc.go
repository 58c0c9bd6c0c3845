// Package flags are the flags of a program that is a manager, under kube-controller-manager's names, and what they mean:
//
//	f := flags.New("my-operator")
//	f.AddFlags(pflag.CommandLine)
//	pflag.Parse()
//	err := f.Validate()
//	defer f.StartLogging(os.Stderr)()
//	config, err := f.RESTConfig()
//	mgr, err := manager.New(config, f.ManagerOptions(metrics.New()))
//
// The defaults are safe: health and metrics on loopback; elsewhere by TLS, and metrics only to those whom the API server allows.
package flags
