// Command onserve runs the CI operators and their stand-ins on two clusters until Ctrl-C, with the configuration of
// package sample. Each cluster is a "flyball serve" in a process of its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/process"
	"github.com/flyball-dev/flyball/examples/operators/ci/scenario"
	"github.com/flyball-dev/flyball/examples/operators/internal/served"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

func main() {
	flyball := flag.String("flyball", "flyball", "the flyball program")
	play := flag.Bool("play", false, "ask for one thing after the other, as make run does, and end")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "onserve: there are no arguments: what is %q?\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(ctrl.SetupSignalHandler(), *flyball, *play, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "onserve:", err)
		os.Exit(1)
	}
}

// run starts everything, and stops it when ctx is done or, with play, when the story has ended.
func run(ctx context.Context, flyball string, play bool, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "flyball-ci-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &scenario.Stage{Dir: dir, Say: func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }}
	merged := clientcmdapi.NewConfig()
	for name, c := range map[string]*client.Client{scenario.HubName: &s.Hub, scenario.BuildName: &s.Build} {
		cluster, err := served.Start(ctx, flyball, filepath.Join(dir, "kubeconfig-"+name))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, cluster.Stop()) }()
		if err := addContext(merged, name, cluster.Kubeconfig); err != nil {
			return err
		}
		if *c, err = client.New(cluster.Config, client.Options{Scheme: api.NewScheme()}); err != nil {
			return err
		}
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*merged, kubeconfig); err != nil {
		return err
	}
	if err := s.SetUp(ctx); err != nil {
		return err
	}
	o := process.NewOptions()
	flags := pflag.NewFlagSet("ci", pflag.ContinueOnError)
	o.AddFlags(flags)
	if err := flags.Parse(append(scenario.Args(dir), "--kubeconfig="+kubeconfig)); err != nil {
		return err
	}
	fmt.Fprintf(out, `The operators run on two clusters, each a flyball serve. Ctrl-C ends all of it.

  export KUBECONFIG=%s
  kubectl --context %s apply -f examples/operators/ci/sample/objects
  kubectl --context %s get ephemeralclusters,prowjobs -A -w

`, kubeconfig, scenario.HubName, scenario.HubName)
	return runBeside(ctx, o, play, s)
}

// runBeside runs the operators until ctx is done or, with play, until the story has ended.
func runBeside(ctx context.Context, o *process.Options, play bool, s *scenario.Stage) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1) // the operators' error, from the goroutine that runs them
	go func() {
		defer stop()
		ended <- process.Run(ctx, o)
	}()
	var told error
	if play {
		told = s.Play(ctx)
		stop()
	}
	return errors.Join(told, <-ended)
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
