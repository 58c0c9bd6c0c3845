package nodes

import "k8s.io/client-go/rest"

// Quiet makes clients of config ignore the server's warnings. Some controllers must use deprecated types, so warning
// the user about them is of no use.
//
// Source: k8s.io/kubernetes v1.37.1 cmd/kube-controller-manager/app/controllermanager.go PersistentPreRunE.
func Quiet(config *rest.Config) *rest.Config {
	config.WarningHandler, config.WarningHandlerWithContext = nil, rest.NoWarnings{}
	return config
}
