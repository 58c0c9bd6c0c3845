// Command node runs a real node in a docker container, with flyball manager deployed in the place of four of
// kube-controller-manager's controllers, until Ctrl-C.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/flyball-dev/flyball/peers/node"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

func run() error {
	theirs := flag.Bool("theirs", false, "leave all work to kube-controller-manager, and do not deploy flyball manager")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; the flags are listed by -help", flag.Arg(0))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	controllers := node.Ours
	if *theirs {
		controllers = node.Theirs
	}
	n, err := node.Start(ctx, os.Stderr, controllers)
	if err != nil {
		return err
	}
	if !*theirs {
		fmt.Fprintln(os.Stderr, "deploying flyball manager")
		if err := n.DeployManager(ctx); err != nil {
			return fmt.Errorf("%w (closed: %v)", err, n.Close())
		}
	}
	fmt.Printf(`
export KUBECONFIG=%s

No image can be pulled. The node has %s. Try:

  kubectl create deployment web --image=%[3]s --replicas=3 && kubectl rollout status deployment/web
  go run ./cmd/flyball demo --kubeconfig %[1]s --images %[2]s

Ctrl-C stops it; the logs are in %[4]s/logs.
`, n.Kubeconfig, strings.Join(node.Web[:], ","), node.Web[0], n.Dir)
	<-ctx.Done()
	stop()
	fmt.Fprintln(os.Stderr, "stopping")
	return n.Close()
}
