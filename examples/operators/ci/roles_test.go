package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/distributor"
	"github.com/flyball-dev/flyball/examples/operators/ci/ensure"
	"github.com/flyball-dev/flyball/examples/operators/ci/importcleaner"
	"github.com/flyball-dev/flyball/examples/operators/ci/process"
	"github.com/flyball-dev/flyball/manager/rbac"
)

var update = flag.Bool("update", false, "write the roles into the manifests, instead of comparing them")

const account = "ci-controllers"

// The roles in the manifests are those of a run in which the operators do everything that they can do: no more, no
// less. The stand-ins run beside them, in a process of their own.
func TestManifests(t *testing.T) {
	t.Parallel()
	w := newPrograms(t)
	recorders := map[string]*rbac.Recorder{}
	plain := w.configs
	w.configs = map[string]*rest.Config{}
	for name, config := range plain {
		recorders[name] = rbac.NewRecorder()
		w.configs[name] = rest.CopyConfig(config)
		w.configs[name].Wrap(recorders[name].Wrap)
	}
	operators := Options(w.stage.Dir)
	operators.Controllers = []string{
		process.Promotion, process.Distributor, process.Refresher, process.Cleaner,
		process.Ephemeral,
	}
	operators.LeaderElection.Enabled = true
	// the machine may be busy
	operators.LeaderElection.LeaseDuration, operators.LeaderElection.RenewDeadline = 90*time.Second, time.Minute
	w.before()
	stopOperators := w.start(operators)
	w.orphan()
	standIns := Options(w.stage.Dir)
	standIns.Controllers = []string{process.Minter, process.Importer, process.Runner}
	w.configs = plain
	stopStandIns := w.start(standIns)
	w.Must(w.stage.Play(w.Ctx))
	w.corners()
	stopStandIns()
	stopOperators()

	compare(t, "hub-role.yaml", account, recorders[Hub], nil)
	// The hub may be a build cluster, too, so that the names differ.
	compare(t, "build/role.yaml", account+"-build", recorders[Build01], &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: account + "-handed-on"}, Rules: distributor.Rules(),
	})
}

// compare compares what was recorded with a manifest, whose ClusterRole is called role. handedOn is what the process
// gives to others, and must therefore have.
func compare(t *testing.T, name, role string, r *rbac.Recorder, handedOn *rbacv1.ClusterRole) {
	t.Helper()
	got, err := r.Manifests(role, "ci", account)
	if err != nil {
		t.Fatal(err)
	}
	if handedOn != nil {
		binding := &rbacv1.ClusterRoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: handedOn.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: handedOn.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: "ci"}},
		}
		for _, o := range []any{handedOn, binding} {
			text, err := yaml.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			got = append(append(got, "---\n"...), text...)
		}
	}
	file := filepath.Join("manifests", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the run needs (-update writes it). The run needs\n%s", name, got)
	}
}

// before makes images that the promotion has to look at closely, and leaves a tag import in each cluster that the
// cleaner has to delete.
func (w *programs) before() {
	w.Helper()
	w.Must(w.stage.OldImages(w.Ctx))
	for _, server := range w.servers {
		old := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": api.CIGroup.String(), "kind": "TestImageStreamTagImport",
			"spec": map[string]any{"clusterName": Build01, "namespace": "ocp", "name": "4.20:cli"},
		}}
		old.SetNamespace("ci")
		old.SetName("old")
		old.SetCreationTimestamp(metav1.NewTime(time.Now().Add(-importcleaner.MaxAge)))
		w.Must(server.Seed(w.Ctx, old))
	}
}

// orphan is a job without a cluster, while there is nobody who runs it: it is aborted.
func (w *programs) orphan() {
	w.Helper()
	job := &api.ProwJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ci", Name: "orphan",
			Labels: map[string]string{api.EphemeralClusterLabel: "nobody"},
		},
	}
	job.Spec = api.ProwJobSpec{Type: api.PeriodicJob, Job: "orphan", Cluster: Build01}
	w.Must(w.Create(w.Ctx, job))
	w.Until("the orphan is aborted", func() bool {
		w.Must(w.Get(w.Ctx, client.ObjectKeyFromObject(job), job))
		return job.Status.State == api.AbortedState
	})
}

// corners does what the scenario does not: it has the operators repair, and go ways that are seldom gone.
func (w *programs) corners() {
	w.Helper()
	hub, build := w.stage.Hub, w.stage.Build
	// What the distributor made is changed, and has to be made again when there is another image.
	role, binding := &rbacv1.Role{}, &rbacv1.RoleBinding{}
	key := client.ObjectKey{Namespace: "ocp", Name: "ci-operator-image-manager"}
	w.Must(errors.Join(build.Get(w.Ctx, key, role), build.Get(w.Ctx, key, binding)))
	role.Rules, binding.Subjects = nil, nil
	secret := &corev1.Secret{}
	w.Must(build.Get(w.Ctx, client.ObjectKey{Namespace: "ocp", Name: ensure.PullSecretName}, secret))
	secret.Data[corev1.DockerConfigJsonKey] = []byte(`{"a":1}`)
	w.Must(errors.Join(build.Update(w.Ctx, role), build.Update(w.Ctx, binding), build.Update(w.Ctx, secret)))
	image := func(digest string) {
		stream := &api.ImageStream{}
		w.Must(hub.Get(w.Ctx, client.ObjectKey{Namespace: "ocp", Name: "4.21"}, stream))
		stream.Point("cli", api.TagEvent{Created: metav1.Now(), Image: "sha256:" + digest})
		w.Must(hub.Status().Update(w.Ctx, stream))
		w.Until("the other image is there", func() bool {
			w.Must(build.Get(w.Ctx, client.ObjectKey{Namespace: "ocp", Name: "4.21"}, stream))
			return stream.Tag("cli").Items[0].Image == "sha256:"+digest
		})
	}
	image("other")
	w.Must(build.Get(w.Ctx, client.ObjectKeyFromObject(secret), secret))
	if string(secret.Data[corev1.DockerConfigJsonKey]) != "{}" {
		w.Errorf("the pull secret is still %s", secret.Data)
	}
	// The copy is of another type, which cannot be changed.
	w.Must(build.Delete(w.Ctx, secret))
	w.Must(
		build.Create(w.Ctx,
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ocp", Name: ensure.PullSecretName}}),
	)
	image("third")
	// A namespace that the build cluster does not have.
	fresh := &api.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "fresh", Name: "s"}}
	w.Must(hub.Create(w.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fresh"}}))
	w.Must(hub.Create(w.Ctx, fresh))
	fresh.Point("t", api.TagEvent{Created: metav1.Now(), Image: "sha256:f"})
	w.Must(hub.Status().Update(w.Ctx, fresh))
	w.Must(hub.Create(w.Ctx, api.WithImportName(&api.TestImageStreamTagImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ci"},
		Spec:       api.TestImageStreamTagImportSpec{ClusterName: Build01, Namespace: "fresh", Name: "s:t"},
	})))
	w.Until("the fresh one is there", func() bool {
		s := &api.ImageStream{}
		err := build.Get(w.Ctx, client.ObjectKeyFromObject(fresh), s)
		w.Must(client.IgnoreNotFound(err))
		return err == nil && s.Tag("t") != nil
	})
	// A service account of the build cluster whose secret is gone.
	sa := &corev1.ServiceAccount{
		ObjectMeta:       metav1.ObjectMeta{Namespace: "team", Name: "there"},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "gone"}},
	}
	w.Must(build.Create(w.Ctx, sa))
	w.Until("the reference that leads nowhere is dropped", func() bool {
		w.Must(build.Get(w.Ctx, client.ObjectKeyFromObject(sa), sa))
		return len(sa.ImagePullSecrets) == 0 || sa.ImagePullSecrets[0].Name != "gone"
	})
	w.credentials()
}

// credentials has those of a cluster change, and then its job vanish.
func (w *programs) credentials() {
	w.Helper()
	hub, build := w.stage.Hub, w.stage.Build
	ec := &api.EphemeralCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ephemeral-cluster", Name: "corner"}}
	ec.Spec.CIOperator.Test = api.TestSpec{Workflow: "w", ClusterProfile: "aws", Env: map[string]string{"A": "1"}}
	ec.Annotations = map[string]string{api.KonfluxClusterAnnotation: "konflux-1", api.KonfluxTenantAnnotation: "team-a"}
	ec.Spec.CIOperator.Releases = map[string]runtime.RawExtension{"latest": {Raw: []byte("{}")}}
	w.Must(hub.Create(w.Ctx, ec))
	get := func() *api.EphemeralCluster {
		w.Must(hub.Get(w.Ctx, client.ObjectKeyFromObject(ec), ec))
		return ec
	}
	w.Until("it is ready", func() bool { return get().Status.Phase == api.Ready })
	var namespaces corev1.NamespaceList
	w.Must(build.List(w.Ctx, &namespaces, client.MatchingLabels{api.JobIDLabel: ec.Status.ProwJobID}))
	w.Must(build.Update(w.Ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespaces.Items[0].Name, Name: "cluster-provisioning"},
		Data:       map[string][]byte{"kubeconfig": []byte("renewed")},
	}))
	ec.Spec.CIOperator.Test.Env["A"] = "2"
	w.Must(hub.Update(w.Ctx, ec))
	w.Until("the credentials are renewed", func() bool {
		s := &corev1.Secret{}
		w.Must(hub.Get(w.Ctx, client.ObjectKey{Namespace: ec.Namespace, Name: ec.Status.SecretRef}, s))
		return string(s.Data["kubeconfig"]) == "renewed"
	})
	w.Must(hub.Delete(w.Ctx, &api.ProwJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: ec.Status.ProwJobID}}))
	w.Until("it has failed", func() bool { return get().Status.Phase == api.Failed && len(ec.Finalizers) == 0 })
	for _, c := range []client.Client{hub, build} {
		err := c.Get(w.Ctx, client.ObjectKey{Namespace: "ci", Name: "old"}, &api.TestImageStreamTagImport{})
		if !apierrors.IsNotFound(err) {
			w.Errorf("an old tag import is still there: %v", err)
		}
	}
}
