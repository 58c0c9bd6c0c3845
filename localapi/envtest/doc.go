// Package envtest is a control plane for a test suite, in the shape of sigs.k8s.io/controller-runtime/pkg/envtest. To
// move a suite over, import this package in place of the other:
//
//	"github.com/flyball-dev/flyball/localapi/envtest"
//
// No binary is needed: [Environment.Start] serves a [localapi.Server] over TLS at a loopback port, in the suite's own
// process. As in the other package, roles decide what users may do, the user of [Environment.Config] may do everything,
// and no controllers run: garbage is not collected, and a deleted namespace stays. Package cluster has controllers for
// both.
//
// # What is not there
//
// The fields and types about processes (ControlPlane, APIServer, Etcd, KubeCtl) do not exist, so code that uses them
// does not compile.
//
// # Reading order
//
// environment.go has the environment; it authenticates users, and delays the news of removed pods. crds.go installs
// definitions, and webhooks.go leads webhooks to the suite.
package envtest
