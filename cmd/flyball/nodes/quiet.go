package nodes

import "k8s.io/client-go/rest"

// Quiet has clients of config say nothing of the server's warnings. Our controllers work on deprecated types because that is what
// they are for, and nobody can change that by being told.
//
// Source: k8s.io/kubernetes v1.37.1 cmd/kube-controller-manager/app/controllermanager.go PersistentPreRunE.
func Quiet(config *rest.Config) *rest.Config {
	config.WarningHandler, config.WarningHandlerWithContext = nil, rest.NoWarnings{}
	return config
}
