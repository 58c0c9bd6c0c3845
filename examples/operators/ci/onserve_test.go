package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/process"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/internal/kit"
)

// TestOnServe runs the operators and their stand-ins with the configuration of package sample on two clusters, each a
// "flyball serve" in a process of its own, and plays the scenario there.
//
// make onserve runs this test with FLYBALL_ONSERVE=1: instead of the scenario, it prints commands to try, and stays
// until Ctrl-C.
func TestOnServe(t *testing.T) {
	flyball := kit.Build(t, "./cmd/flyball")
	dir, merged := t.TempDir(), clientcmdapi.NewConfig()
	s, w := &Stage{Dir: dir}, optest.NewWorld(t, nil)
	for name, c := range map[string]*client.Client{Hub: &s.Hub, Build01: &s.Build} {
		cluster, err := optest.StartServe(w.Ctx, flyball, filepath.Join(dir, "kubeconfig-"+name))
		w.Must(err)
		defer func() { w.Must(cluster.Stop()) }()
		w.Must(addContext(merged, name, cluster.Kubeconfig))
		*c = newClient(t, cluster.Config)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	w.Must(clientcmd.WriteToFile(*merged, kubeconfig))
	w.Must(s.SetUp(w.Ctx))
	o, flags := process.NewOptions(), pflag.NewFlagSet("ci", pflag.ContinueOnError)
	o.AddFlags(flags)
	w.Must(flags.Parse(append(Args(dir), "--kubeconfig="+kubeconfig)))
	defer w.Go(func(ctx context.Context) error { return process.Run(ctx, o) })()
	if os.Getenv("FLYBALL_ONSERVE") == "" {
		w.Must(s.Play(w.Ctx))
		return
	}
	fmt.Printf(`The operators run on two clusters, each a flyball serve. Ctrl-C ends all of it.

  export KUBECONFIG=%s
  kubectl --context %s apply -f examples/operators/ci/sample/objects
  kubectl --context %s get ephemeralclusters,prowjobs -A -w

`, kubeconfig, Hub, Hub)
	ctrlC, release := signal.NotifyContext(w.Ctx, os.Interrupt)
	defer release()
	<-ctrlC.Done()
}

// addContext adds the current context of a kubeconfig under another name.
func addContext(to *clientcmdapi.Config, name, path string) error {
	from, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return err
	}
	context := from.Contexts[from.CurrentContext]
	if context == nil {
		return fmt.Errorf("%s has no current context", path)
	}
	to.Clusters[name], to.AuthInfos[name] = from.Clusters[context.Cluster], from.AuthInfos[context.AuthInfo]
	to.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	return nil
}
