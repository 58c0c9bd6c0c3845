package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/examples/operators/projects/api"
	"github.com/flyball-dev/flyball/examples/operators/projects/controller"
	"github.com/flyball-dev/flyball/internal/kit"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/multicluster/providers"
)

// TestOnServe runs the operator on a "flyball serve" of its own. This process serves the control planes behind one
// loopback address. Everyone who can reach the address may do everything in them. The sample's projects become ready.
//
// make onserve runs this test with FLYBALL_ONSERVE=1: it then prints commands to try, and stays until Ctrl-C.
func TestOnServe(t *testing.T) {
	flyball := kit.Build(t, "./cmd/flyball")
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	cluster, err := optest.StartServe(t.Context(), flyball, kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	w := optest.NewWorld(t, newClient(t, cluster.Config))
	defer func() { w.Must(cluster.Stop()) }()
	operator.Install(t, cluster.Config)
	planes := newHost()
	defer func() { w.Must(planes.Close()) }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.Must(err)
	defer w.Go(func(ctx context.Context) error {
		return serve(ctx, listener, planes.Handler(http.NotFoundHandler()))
	})()
	defer w.Go(func(ctx context.Context) error { return planes.Run(ctx, cluster.Config) })()
	at := "http://" + listener.Addr().String() + before
	o := controller.Options{Discovery: providers.External(), Config: &rest.Config{QPS: -1}}
	o.Discovery.Endpoint = at + "{{.Name}}" + after
	op, err := controller.New(cluster.Config, ctrl.Options{}, o)
	w.Must(err)
	defer w.Go(op.Run)()
	if os.Getenv("FLYBALL_ONSERVE") == "" {
		tryOnServe(w, at+"shop"+after)
		return
	}
	fmt.Printf(`The operator runs on a flyball serve; each control plane is a tenant of one store. Ctrl-C ends all of it.

  export KUBECONFIG=%s
  kubectl apply -f examples/operators/projects/sample.yaml
  kubectl get projects -w
  kubectl --server %s get configmaps

`, kubeconfig, at+"shop"+after)
	ctrlC, release := signal.NotifyContext(w.Ctx, os.Interrupt)
	defer release()
	<-ctrlC.Done()
}

// tryOnServe does what a user may do.
func tryOnServe(w *optest.World, shop string) {
	objects, err := manifest.ReadFiles([]string{"sample.yaml"}, nil)
	w.Must(err)
	w.Must(manifest.Install(w.Ctx, w, objects))
	for _, name := range []string{"shop", "blog"} {
		w.Until(name+" is ready", func() bool {
			var p api.Project
			w.Must(w.Get(w.Ctx, client.ObjectKey{Name: name}, &p))
			return conditions.Is(p.Status.Conditions, api.Ready, metav1.ConditionTrue)
		})
	}
	for host, want := range map[string]int{"": http.StatusOK, "evil.example": http.StatusForbidden} {
		r, err := http.NewRequestWithContext(w.Ctx, http.MethodGet, shop+"/api/v1/configmaps", nil)
		w.Must(err)
		if host != "" {
			r.Host = host
		}
		answer, err := http.DefaultClient.Do(r)
		w.Must(err)
		w.Must(answer.Body.Close())
		if answer.StatusCode != want {
			w.Errorf("the control plane of shop, asked for as %q: %s, want %d", host, answer.Status, want)
		}
	}
}

// serve serves until ctx is done. It answers only requests for the listener's own address, so that a web page under
// another name cannot reach the control planes.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != listener.Addr().String() {
			http.Error(w, fmt.Sprintf("ask for %s", listener.Addr()), http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, r)
	})
	server := &http.Server{Handler: guarded, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
