package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/ephemeralcluster"
	"github.com/flyball-dev/flyball/examples/operators/ci/secretrefresher"
)

// Play requests one thing after another, each when the previous one is done.
func (s *Stage) Play(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		s.promote, s.provision, s.tearDown, s.abandon, s.rotate,
		s.importTag,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// promote begins with three images that are behind their branch. One job updates them, and one of them is brought to
// the build cluster.
func (s *Stage) promote(ctx context.Context) error {
	s.Say("acme/widgets is at %s; ocp/4.21 has three images of it that were built from %s", newCommit, oldCommit)
	if err := s.OldImages(ctx); err != nil {
		return err
	}
	var commits map[string]string
	if err := s.until(ctx, "the images are of the new commit", func() (ok bool, err error) {
		commits, err = s.commits(ctx)
		return commits["server"] == newCommit && commits["agent"] == newCommit && commits["cli"] == newCommit, err
	}); err != nil {
		return err
	}
	jobs, err := s.promotionJobs(ctx)
	if err != nil {
		return err
	}
	s.Show("promotion: %d ProwJob, and they are at %s", len(jobs), commits["cli"])
	if err := s.until(ctx, "the image is in the build cluster", func() (bool, error) {
		here, err1 := digest(ctx, s.Hub, "cli")
		there, err2 := digest(ctx, s.Build, "cli")
		return here != "" && here == there, errors.Join(err1, err2)
	}); err != nil {
		return err
	}
	s.Show(
		"distributor: tests of acme/tests begin with ocp/4.21:cli, so %s has it, too, with a namespace, a role and "+
			"a pull secret", Build01,
	)
	return nil
}

// provision requests a cluster and waits until it is ready.
func (s *Stage) provision(ctx context.Context) error {
	if err := s.Hub.Create(ctx, wanted("for-tests")); err != nil {
		return err
	}
	s.Say("team-a asks for a cluster")
	if err := s.until(ctx, "the cluster is ready", s.phase(ctx, "for-tests", api.Ready)); err != nil {
		return err
	}
	secret := &corev1.Secret{}
	if err := s.Hub.Get(ctx, client.ObjectKey{Namespace: ephemeralcluster.Namespace, Name: "for-tests-credentials"},
		secret); err != nil {
		return err
	}
	s.Show("ephemeral clusters: ready; secret %s has %q", secret.Name, secret.Data["kubeconfig"])
	return nil
}

func (s *Stage) phase(ctx context.Context, name string, want api.EphemeralClusterPhase) func() (bool, error) {
	return func() (bool, error) {
		ec := &api.EphemeralCluster{}
		err := s.Hub.Get(ctx, client.ObjectKey{Namespace: ephemeralcluster.Namespace, Name: name}, ec)
		return ec.Status.Phase == want, err
	}
}

// tearDown returns the cluster.
func (s *Stage) tearDown(ctx context.Context) error {
	ec := wanted("for-tests")
	if err := controllerutil.RetryOnConflict(ctx, s.Hub, ec, func() error {
		ec.Spec.TearDownCluster = true
		return nil
	}); err != nil {
		return err
	}
	if err := s.until(ctx, "the cluster is gone", s.phase(ctx, "for-tests", api.Deprovisioned)); err != nil {
		return err
	}
	s.Show("team-a is done with it: the job was told, took it down, and succeeded")
	return nil
}

// abandon requests another cluster and deletes the request as soon as there is a job.
func (s *Stage) abandon(ctx context.Context) error {
	if err := s.Hub.Create(ctx, wanted("abandoned")); err != nil {
		return err
	}
	if err := s.until(ctx, "there is a job", func() (bool, error) {
		ec := wanted("abandoned")
		err := s.Hub.Get(ctx, client.ObjectKeyFromObject(ec), ec)
		return ec.Status.ProwJobID != "", err
	}); err != nil {
		return err
	}
	if err := s.Hub.Delete(ctx, wanted("abandoned")); err != nil {
		return err
	}
	if err := s.until(ctx, "the other cluster is gone, and its job has ended", func() (bool, error) {
		ec := wanted("abandoned")
		err := s.Hub.Get(ctx, client.ObjectKeyFromObject(ec), ec)
		if !apierrors.IsNotFound(err) {
			return false, err
		}
		var jobs api.ProwJobList
		err = s.Hub.List(ctx, &jobs, client.MatchingLabels{api.EphemeralClusterLabel: "abandoned"})
		return len(jobs.Items) == 1 && jobs.Items[0].Complete(), err
	}); err != nil {
		return err
	}
	s.Show("another one is deleted while it is made: its job has ended, and the finalizer let it go")
	return nil
}

// rotate creates a service account, and marks its pull secret as too old.
func (s *Stage) rotate(ctx context.Context) error {
	builder := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "builder"}}
	if err := errors.Join(s.Hub.Create(ctx, builder), s.Hub.Create(ctx, runsAs(builder))); err != nil {
		return err
	}
	first := ""
	given := func() (bool, error) {
		err := s.Hub.Get(ctx, client.ObjectKeyFromObject(builder), builder)
		return len(builder.ImagePullSecrets) == 1 && builder.ImagePullSecrets[0].Name != first, err
	}
	if err := s.until(ctx, "the service account has a pull secret", given); err != nil {
		return err
	}
	first = builder.ImagePullSecrets[0].Name
	s.Say("service account team/builder has pull secret %s, which is now said to be too old", first)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: first}}
	if err := controllerutil.RetryOnConflict(ctx, s.Hub, secret, func() error {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "serviaccount-secret-rotator.openshift.io/delete-after",
			time.Now().Add(-time.Hour).Format(time.RFC3339))
		return nil
	}); err != nil {
		return err
	}
	if err := s.until(ctx, "the service account has another, and the first is gone", func() (bool, error) {
		if ok, err := given(); !ok || err != nil {
			return false, err
		}
		err := s.Hub.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}); err != nil {
		return err
	}
	s.Show("refresher: it has %s, and the old one is deleted", builder.ImagePullSecrets[0].Name)
	app := runsAs(builder)
	if err := s.until(ctx, "the Pods are replaced that had the first", func() (bool, error) {
		err := s.Hub.Get(ctx, client.ObjectKeyFromObject(app), app)
		copied := app.Spec.Template.Annotations[secretrefresher.PullSecretsAnnotation]
		return copied == builder.ImagePullSecrets[0].Name, err
	}); err != nil {
		return err
	}
	s.Show("refresher: Deployment team/app, which asked for it, is rolled, so that its Pods have the new one")
	return nil
}

// runsAs returns a Deployment whose Pods run as a service account and are replaced when its pull secrets change.
func runsAs(account *corev1.ServiceAccount) *appsv1.Deployment {
	labels := map[string]string{"app": "app"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: account.Namespace, Name: "app",
		Annotations: map[string]string{secretrefresher.RollAnnotation: "true"},
	}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.ServiceAccountName = account.Name
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1"}}
	return d
}

// importTag requests an image in the build cluster that no configuration names.
func (s *Stage) importTag(ctx context.Context) error {
	tagImport := api.WithImportName(&api.TestImageStreamTagImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ci"},
		Spec:       api.TestImageStreamTagImportSpec{ClusterName: Build01, Namespace: "ocp", Name: "4.21:agent"},
	})
	if err := s.Hub.Create(ctx, tagImport); err != nil {
		return err
	}
	if err := s.until(ctx, "the requested image is imported", func() (bool, error) {
		there, err := digest(ctx, s.Build, "agent")
		return there != "", err
	}); err != nil {
		return err
	}
	s.Say("a user requests ocp/4.21:agent in %s", Build01)
	s.Show("distributor: imported; in a week the cleaner deletes the request")
	return nil
}

// digest returns the image of a tag of ocp/4.21, or "" if there is none.
func digest(ctx context.Context, c client.Client, tag string) (string, error) {
	stream := &api.ImageStream{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "ocp", Name: "4.21"}, stream); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if t := stream.Tag(tag); t != nil {
		return t.Items[0].Image, nil
	}
	return "", nil
}

// commits returns the commits that the hub's images were built from, by tag.
func (s *Stage) commits(ctx context.Context) (map[string]string, error) {
	stream, commits := &api.ImageStream{}, map[string]string{}
	if err := s.Hub.Get(ctx, client.ObjectKey{Namespace: "ocp", Name: "4.21"}, stream); err != nil {
		return nil, err
	}
	for _, tag := range stream.Status.Tags {
		image := &api.Image{}
		if err := s.Hub.Get(ctx, client.ObjectKey{Name: api.ImageName(tag.Items[0].Image)}, image); err != nil {
			return nil, fmt.Errorf("image of %s: %w", tag.Tag, err)
		}
		commits[tag.Tag] = image.DockerLabels[api.CommitLabel]
	}
	return commits, nil
}

func (s *Stage) promotionJobs(ctx context.Context) ([]api.ProwJob, error) {
	var jobs api.ProwJobList
	err := s.Hub.List(ctx, &jobs, client.HasLabels{api.PromotionLabel})
	return jobs.Items, err
}
