package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/flyball-dev/flyball/localapi"
)

// Keep serves an API on a loopback port until ctx is done. It tells the reader how to use it.
func (c *Credentials) Keep(ctx context.Context, server *localapi.Server, out io.Writer) error {
	dir, err := os.MkdirTemp("", "flyball-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	socket, err := Open(ctx, "127.0.0.1:0", c, nil)
	if err != nil {
		return fmt.Errorf("serve the API on loopback: %w", err)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := socket.WriteKubeconfig(kubeconfig); err != nil {
		return errors.Join(err, socket.Close())
	}
	fmt.Fprintf(out, `
The API now listens on %s, and everything still runs. Try:

  export KUBECONFIG=%s
  kubectl create deployment hello --image=nginx --replicas=3 && kubectl rollout status deployment/hello
  kubectl get deployments,replicasets,pods -o wide
  kubectl set image deployment/hello nginx=nginx:1.29 && kubectl get pods --watch

Ctrl-C stops it.
`, socket.Addr(), kubeconfig)
	return socket.Serve(ctx, server)
}
