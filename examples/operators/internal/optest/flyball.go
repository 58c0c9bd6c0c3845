package optest

import (
	"fmt"
	"os"
	"testing"

	"github.com/flyball-dev/flyball/cmd/flyball/serve"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// asFlyball tells a child process to act as the flyball program.
const asFlyball = "FLYBALL_AS_FLYBALL"

// FlyballMain is for TestMain of tests that use [Flyball] but not [Main], which does the same.
func FlyballMain(m *testing.M) {
	serveIfFlyball()
	os.Exit(m.Run())
}

// serveIfFlyball serves until a signal and then ends the process, if a test has started the process as flyball.
func serveIfFlyball() {
	if os.Getenv(asFlyball) == "" {
		return
	}
	if len(os.Args) != 4 || os.Args[1] != "serve" || os.Args[2] != "--kubeconfig" {
		fmt.Fprintf(os.Stderr, "only serve --kubeconfig FILE is known here, not %q\n", os.Args[1:])
		os.Exit(2)
	}
	o := serve.Options{
		Addr: "127.0.0.1:0", Kubeconfig: os.Args[3], Controllers: []string{"*"}, Kubelet: true,
		Out: os.Stdout,
	}
	if err := serve.Run(ctrl.SetupSignalHandler(), o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Flyball returns the path of a program that serves as flyball does. It is the test binary, so nothing has to be built.
func Flyball(t *testing.T) (path string) {
	t.Helper()
	t.Setenv(asFlyball, "1")
	return os.Args[0]
}
