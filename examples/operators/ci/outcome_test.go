package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/secretrefresher"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ending is the outcome of a complete play.
const Ending = `build: ocp/4.21:agent like the hub's: true
build: ocp/4.21:cli like the hub's: true
hub: a secret of builder
hub: app is rolled to them: true
hub: builder has 1 pull secrets, 1 secrets
hub: cluster for-tests Deprovisioned, signalled true, secret for-tests-credentials, 0 finalizers
hub: job branch-ci-acme-widgets-main-images of bbbbbbb success
hub: job ephemeralcluster-abandoned ended
hub: job ephemeralcluster-for-tests success
hub: ocp/4.21:agent of bbbbbbb
hub: ocp/4.21:cli of bbbbbbb
hub: ocp/4.21:server of bbbbbbb`

// Outcome returns the final state, without what differs by design: names from hashes and counters, times, versions.
// However often the operators were killed, it is Ending.
func (s *Stage) Outcome(ctx context.Context) (string, error) {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	commits, err := s.commits(ctx)
	if err != nil {
		return "", err
	}
	for tag, commit := range commits {
		add("hub: ocp/4.21:%s of %s", tag, commit)
	}
	var jobs api.ProwJobList
	var clusters api.EphemeralClusterList
	var accounts corev1.ServiceAccountList
	var secrets corev1.SecretList
	for _, list := range []client.ObjectList{&jobs, &clusters, &accounts} {
		if err := s.Hub.List(ctx, list); err != nil {
			return "", err
		}
	}
	for _, j := range jobs.Items {
		state := string(j.Status.State)
		if j.Labels[api.EphemeralClusterLabel] == "abandoned" {
			state = "ended" // by the signal or by an abort, depending on timing
		}
		add("hub: job %s%s %s", j.Spec.Job, commitOf(&j), state)
	}
	for _, c := range clusters.Items {
		done := conditions.Is(c.Status.Conditions, api.TestCompleted, metav1.ConditionTrue)
		add("hub: cluster %s %s, signalled %t, secret %s, %d finalizers", c.Name, c.Status.Phase, done,
			c.Status.SecretRef, len(c.Finalizers))
	}
	for _, a := range accounts.Items {
		if a.Name == "builder" {
			add("hub: %s has %d pull secrets, %d secrets", a.Name, len(a.ImagePullSecrets), len(a.Secrets))
			app := runsAs(&a)
			if err := s.Hub.Get(ctx, client.ObjectKeyFromObject(app), app); err != nil {
				return "", err
			}
			made := app.Spec.Template.Annotations[secretrefresher.PullSecretsAnnotation]
			add("hub: app is rolled to them: %t", len(a.ImagePullSecrets) == 1 && made == a.ImagePullSecrets[0].Name)
		}
	}
	if err := s.Hub.List(ctx, &secrets, client.InNamespace("team")); err != nil {
		return "", err
	}
	for _, secret := range secrets.Items {
		add("hub: a secret of %s", secret.Annotations[corev1.ServiceAccountNameKey])
	}
	there, err := s.thereOutcome(ctx)
	if err != nil {
		return "", err
	}
	lines = append(lines, there...)
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

func commitOf(j *api.ProwJob) string {
	if j.Spec.Refs == nil {
		return ""
	}
	return " of " + j.Spec.Refs.BaseSHA
}

// thereOutcome returns the final state of the build cluster.
func (s *Stage) thereOutcome(ctx context.Context) (lines []string, err error) {
	var streams api.ImageStreamList
	var imports api.ImageStreamImportList
	var namespaces corev1.NamespaceList
	for _, list := range []client.ObjectList{&streams, &imports} {
		if err := s.Build.List(ctx, list); err != nil {
			return nil, err
		}
	}
	for _, stream := range streams.Items {
		for _, tag := range stream.Status.Tags {
			here, err := digest(ctx, s.Hub, tag.Tag)
			if err != nil {
				return nil, err
			}
			lines = append(lines,
				fmt.Sprintf("build: %s/%s:%s like the hub's: %t", stream.Namespace, stream.Name, tag.Tag,
					here == tag.Items[0].Image))
		}
	}
	for _, i := range imports.Items {
		lines = append(lines, "build: an import of "+i.Spec.Images[0].From.Name)
	}
	if err := s.Build.List(ctx, &namespaces, client.HasLabels{api.JobIDLabel}); err != nil {
		return nil, err
	}
	for _, n := range namespaces.Items {
		if n.DeletionTimestamp == nil {
			lines = append(lines, "build: a job's namespace that nobody deletes")
		}
	}
	return lines, nil
}
