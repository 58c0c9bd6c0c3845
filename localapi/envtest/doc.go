// Package envtest is a control plane for a test suite, in the shape of sigs.k8s.io/controller-runtime/pkg/envtest. A suite moves
// over when it imports this package in place of the other:
//
//	"github.com/flyball-dev/flyball/localapi/envtest"
//
// No binary is needed: [Environment.Start] serves a [localapi.Server] over TLS at a loopback port, in the suite's own process.
// As in the other package, roles decide what users may do, the user of [Environment.Config] may do everything, and nothing runs
// controllers: no garbage is collected, and no namespace goes away. Package cluster has them.
//
// # What is not there
//
// Webhooks are not called: WebhookInstallOptions with anything in it is an error of Start, and a conversion webhook in a
// definition is not called. Validation rules in CEL are not evaluated (docs/divergence.md). There are no fields and types about
// processes (ControlPlane, APIServer, Etcd, KubeCtl): what uses them does not compile.
//
// # Reading order
//
// environment.go is the environment, crds.go how definitions are installed, users.go who may come in, pace.go when watches
// hear of removed pods, webhooks.go what is refused.
package envtest
