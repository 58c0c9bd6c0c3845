package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/importcleaner"
	"github.com/flyball-dev/flyball/examples/operators/ci/process"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/localapi"
)

// TestStory plays the scenario on two clusters, with all controllers in this process, and then nothing is written.
func TestStory(t *testing.T) {
	dir := t.TempDir()
	optest.Story(t, 10, func(t *testing.T, teller *optest.Teller) error {
		ctx := klog.NewContext(t.Context(), klog.Logger{})
		hub, build := localapi.NewTest(t), localapi.NewTest(t)
		configs := map[string]*rest.Config{Hub: hub.RESTConfig(), Build01: build.RESTConfig()}
		s := &Stage{Hub: newClient(t, configs[Hub]), Build: newClient(t, configs[Build01]), Dir: dir, Teller: teller}
		s.Say("Two clusters, %s and %s, with the CI's kinds. All controllers start.", Hub, Build01)
		if err := s.SetUp(ctx); err != nil {
			return err
		}
		if err := oldTagImport(ctx, hub); err != nil {
			return err
		}
		o := Options(dir)
		if err := o.Complete(); err != nil {
			return err
		}
		f, err := process.New(configs, o)
		if err != nil {
			return err
		}
		const ending = "by promotion, distribution, ephemeral clusters, secret rotation and clean-up."
		return s.Tell(ctx, ending, func() error {
			if err := s.Play(ctx); err != nil {
				return err
			}
			err := s.Hub.Get(ctx, client.ObjectKey{Namespace: "ci", Name: "old"}, &api.TestImageStreamTagImport{})
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("the old TestImageStreamTagImport still exists: %w", err)
			}
			s.Show("cleaner: a TestImageStreamTagImport that was a week old is deleted")
			s.Say("Nothing is asked for any more.")
			return s.Idle(time.Second, hub.Audit(), build.Audit()) // until the last writes are answered and recorded
		}, f.Run)
	})
}

// oldTagImport seeds a TestImageStreamTagImport that is a week old.
func oldTagImport(ctx context.Context, hub *localapi.Test) error {
	old := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": api.CIGroup.String(), "kind": "TestImageStreamTagImport",
		"metadata": map[string]any{
			"namespace": "ci", "name": "old",
			"creationTimestamp": time.Now().Add(-importcleaner.MaxAge).UTC().Format(time.RFC3339),
		},
		"spec": map[string]any{"clusterName": Build01, "namespace": "ocp", "name": "4.20:cli"},
	}}
	old.SetCreationTimestamp(metav1.NewTime(time.Now().Add(-importcleaner.MaxAge)))
	return hub.Seed(ctx, old)
}
