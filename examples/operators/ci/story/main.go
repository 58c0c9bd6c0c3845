// Command story demonstrates the CI operators: two clusters in this process, and a user that requests things and shows
// the results.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/importcleaner"
	"github.com/flyball-dev/flyball/examples/operators/ci/process"
	"github.com/flyball-dev/flyball/examples/operators/ci/scenario"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
)

func main() {
	if err := run(klog.NewContext(context.Background(), klog.Logger{}),
		func(format string, args ...any) { fmt.Printf(format+"\n", args...) }); err != nil {
		fmt.Fprintln(os.Stderr, "story:", err)
		os.Exit(1)
	}
}

// idle is how long there must be no write at the end.
const idle = 3 * time.Second

// run plays the story.
func run(ctx context.Context, say func(format string, args ...any)) (err error) {
	begin := time.Now()
	dir, err := os.MkdirTemp("", "flyball-ci-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	servers, configs, clients := map[string]*localapi.Server{}, map[string]*rest.Config{}, map[string]client.Client{}
	for _, name := range []string{scenario.HubName, scenario.BuildName} {
		server, err := localapi.New(localapi.Options{Audit: &audit.Log{}})
		if err != nil {
			return err
		}
		defer server.Close()
		servers[name], configs[name] = server, server.RESTConfig()
		if clients[name], err = client.New(configs[name], client.Options{Scheme: api.NewScheme()}); err != nil {
			return err
		}
	}
	s := &scenario.Stage{Hub: clients[scenario.HubName], Build: clients[scenario.BuildName], Dir: dir, Say: say}
	say("Two clusters, %s and %s, with the CI's kinds. All controllers start.", scenario.HubName, scenario.BuildName)
	if err := errors.Join(s.SetUp(ctx), oldTagImport(ctx, servers[scenario.HubName])); err != nil {
		return err
	}
	o := scenario.Options(dir)
	if err := o.Complete(); err != nil {
		return err
	}
	f, err := process.New(configs, o)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1) // the operators' error, from the goroutine that runs them
	go func() { ended <- f.Run(running) }()
	err = tell(ctx, s, servers, say)
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		return err
	}
	say("Shown in %.0f s: promotion, distribution, ephemeral clusters, secret rotation and clean-up worked on two "+
		"clusters, and wrote nothing when idle.", time.Since(begin).Seconds())
	return nil
}

// tell plays the scenario, and counts the writes when everything is done.
func tell(ctx context.Context, s *scenario.Stage, servers map[string]*localapi.Server, say func(string, ...any)) error {
	if err := s.Play(ctx); err != nil {
		return err
	}
	err := s.Hub.Get(ctx, client.ObjectKey{Namespace: "ci", Name: "old"}, &api.TestImageStreamTagImport{})
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("the old TestImageStreamTagImport still exists: %w", err)
	}
	say("A TestImageStreamTagImport that was a week old is deleted.")
	time.Sleep(time.Second) // until the last writes are answered and recorded
	for _, server := range servers {
		server.Audit().Reset()
	}
	time.Sleep(idle)
	writes := 0
	for _, server := range servers {
		writes += len(server.Audit().Writes())
	}
	if writes > 0 {
		return fmt.Errorf("%d writes while there was nothing to do", writes)
	}
	say("Nothing is asked for, for %v: 0 writes.", idle)
	return nil
}

// oldTagImport seeds a TestImageStreamTagImport that is a week old.
func oldTagImport(ctx context.Context, hub *localapi.Server) error {
	old := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": api.CIGroup.String(), "kind": "TestImageStreamTagImport",
		"metadata": map[string]any{
			"namespace": "ci", "name": "old",
			"creationTimestamp": time.Now().Add(-importcleaner.MaxAge).UTC().Format(time.RFC3339),
		},
		"spec": map[string]any{"clusterName": scenario.BuildName, "namespace": "ocp", "name": "4.20:cli"},
	}}
	old.SetCreationTimestamp(metav1.NewTime(time.Now().Add(-importcleaner.MaxAge)))
	return hub.Seed(ctx, old)
}
