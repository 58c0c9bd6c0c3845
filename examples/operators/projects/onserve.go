package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/internal/served"
	"github.com/flyball-dev/flyball/examples/operators/projects/controller"
	"github.com/flyball-dev/flyball/examples/operators/projects/manifests"
	"github.com/flyball-dev/flyball/examples/operators/projects/planes"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/multicluster/providers"
)

// onServe runs the operator on a "flyball serve" of its own until ctx is done. This process serves the control planes
// behind one loopback address. Everyone who can reach the address may do everything in them.
func onServe(ctx context.Context, flyball string, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "flyball-projects-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cluster, err := served.Start(ctx, flyball, filepath.Join(dir, "kubeconfig"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	scheme, err := controller.NewScheme()
	if err != nil {
		return err
	}
	c, err := client.New(cluster.Config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	if err := manifests.Install(ctx, c); err != nil {
		return err
	}
	host := planes.New()
	defer func() { err = errors.Join(err, host.Close()) }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	at := "http://" + listener.Addr().String() +
		"/apis/resourcemanager.miloapis.com/v1alpha1/projects/{{.Name}}/control-plane"
	operator, err := controller.New(cluster.Config, ctrl.Options{}, controller.Options{
		Discovery: providers.Discovery{Endpoint: at}, Config: &rest.Config{QPS: -1},
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	fmt.Fprintf(out,
		`The operator runs on a flyball serve; each control plane is a tenant of one store. Ctrl-C ends all of it.

  export KUBECONFIG=%s
  kubectl apply -f examples/operators/projects/sample.yaml
  kubectl get projects -w
  kubectl --server http://%s/apis/resourcemanager.miloapis.com/v1alpha1/projects/shop/control-plane get configmaps

`, cluster.Kubeconfig, listener.Addr())
	return together(klog.NewContext(ctx, klog.Logger{}),
		func(ctx context.Context) error { return serve(ctx, listener, host.Handler(http.NotFoundHandler())) },
		func(ctx context.Context) error { return host.Run(ctx, cluster.Config) }, operator.Run)
}

// together runs all functions until ctx is done or one of them has ended, and returns when all have ended.
func together(ctx context.Context, all ...func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(all))
	var running sync.WaitGroup
	for i, run := range all {
		running.Go(func() {
			defer stop()
			errs[i] = run(ctx)
		})
	}
	running.Wait()
	return errors.Join(errs...)
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
