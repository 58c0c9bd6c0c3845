package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/ciconfig"
	"github.com/flyball-dev/flyball/examples/operators/ci/distributor"
	"github.com/flyball-dev/flyball/examples/operators/ci/ensure"
	"github.com/flyball-dev/flyball/examples/operators/ci/imagestreamtag"
	"github.com/flyball-dev/flyball/examples/operators/ci/standin"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/reconcile"
)

func TestKeyRoundTrip(t *testing.T) {
	for _, k := range []distributor.Key{
		{Cluster: "build01", Ref: imagestreamtag.Ref{Namespace: "ocp", Stream: "4.21", Tag: "cli"}},
		{Cluster: "a_b-c.d", Ref: imagestreamtag.Ref{Namespace: "my-name.space", Stream: "s-t.u", Tag: "v_1.2"}},
	} {
		if got, err := distributor.ParseKey(k.String()); got != k || err != nil {
			t.Errorf("%v became %v, %v", k, got, err)
		}
	}
	for _, text := range []string{"", "ocp/4.21:cli", "_ocp/4.21:cli", "b_ocp/4.21", "b_ocp"} {
		if k, err := distributor.ParseKey(text); err == nil {
			t.Errorf("%q became %v", text, k)
		}
	}
}

// distributorWorld is a hub and two build clusters with importers.
type distributorWorld struct {
	*World
	dir    string
	o      distributor.Options
	refuse atomic.Bool
}

func inDistributor(t *testing.T, test func(w *distributorWorld)) {
	t.Helper()
	dir := t.TempDir()
	In(t, func(c *World) {
		w := &distributorWorld{World: c, dir: dir, o: distributor.Options{Metrics: distributor.NewMetrics()}}
		w.inputs("{namespace: ocp, name: '4.21', tag: cli}")
		for _, cluster := range []string{Build01, Build02} {
			w.Create(cluster,
				&corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: ensure.PullSecretNamespace, Name: ensure.PullSecretName},
					Data:       map[string][]byte{"a": []byte("b")},
				})
		}
		test(w)
	}, Hub, Build01, Build02)
}

// inputs configures what tests begin with.
func (w *distributorWorld) inputs(tags ...string) {
	w.Helper()
	text := "metadata: {org: o, repo: r, branch: main}\nbase_images:\n"
	for n, tag := range tags {
		text += fmt.Sprintf("  image%d: %s\n", n, tag)
	}
	w.Must(os.WriteFile(filepath.Join(w.dir, "config.yaml"), []byte(text), 0o600))
}

func (w *distributorWorld) start() (stop func()) {
	w.Helper()
	agent, err := ciconfig.New(w.dir, "", ciconfig.Options{Interval: 30 * time.Second})
	w.Must(err)
	f := w.Fleet(distributor.Caches()...)
	w.Must(f.Hub.Manager.Add(agent))
	w.Must(distributor.Add(f, agent, w.o))
	for _, c := range f.Builds {
		w.Must(standin.AddImporter(c, standin.ImporterOptions{Refuse: func(string) error {
			if w.refuse.Load() {
				return errors.New("the registry is down")
			}
			return nil
		}}))
	}
	return w.Go(f.Run)
}

// has makes a tag of the hub point at an image.
func (w *distributorWorld) has(stream, digest string, tags ...string) {
	w.Helper()
	s := &api.ImageStream{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ocp", Name: stream,
			Annotations: map[string]string{"release.openshift.io/config": "{}"},
		},
	}
	if !w.Exists(Hub, "ocp", stream, s) {
		w.Create(Hub, s)
	}
	for _, tag := range tags {
		s.Point(tag, api.TagEvent{Created: metav1.Now(), Image: digest, DockerImageReference: "quay.io/x/" + tag})
	}
	w.Must(w.Client.Status().Update(w.Ctx, s))
}

// image is what a tag points at in a cluster; empty if there is none.
func (w *distributorWorld) image(cluster, stream, tag string) string {
	w.Helper()
	s := &api.ImageStream{}
	if !w.Exists(cluster, "ocp", stream, s) {
		return ""
	}
	if t := s.Tag(tag); t != nil && len(t.Items) > 0 {
		return t.Items[0].Image
	}
	return ""
}

func (w *distributorWorld) wantImage(cluster, stream, tag, want string) {
	w.Helper()
	if got := w.image(cluster, stream, tag); got != want {
		w.Errorf("in %s, %s:%s is %q, want %q", cluster, stream, tag, got, want)
	}
}

// A tag gets an image: every build cluster gets namespace, role, binding, stream, pull secret and the image. Then
// another: it comes, too. Afterwards, and after a restart, nothing is written.
func TestDistribute(t *testing.T) {
	inDistributor(t, func(w *distributorWorld) {
		stop := w.start()
		w.has("4.21", "sha256:1", "cli", "unneeded")
		time.Sleep(time.Minute)
		for _, cluster := range []string{Build01, Build02} {
			w.wantImage(cluster, "4.21", "cli", "sha256:1")
			w.wantImage(cluster, "4.21", "unneeded", "")
			stream := Get(w.World, cluster, "ocp", "4.21", &api.ImageStream{})
			if spec := stream.SpecTag("cli"); !stream.Spec.LookupPolicy.Local || spec == nil ||
				spec.ReferencePolicy.Type != api.LocalReference ||
				stream.Annotations["release.openshift.io/config"] != "{}" {
				t.Errorf("the stream is %+v", stream)
			}
			role := Get(w.World, cluster, "ocp", "ci-operator-image-manager", &rbacv1.Role{})
			binding := Get(w.World, cluster, "ocp", "ci-operator-image-manager", &rbacv1.RoleBinding{})
			if len(role.Rules) != 1 || binding.RoleRef.Name != role.Name ||
				binding.Subjects[0].Name != "ci-operator" || binding.Subjects[0].Namespace != "ci" {
				t.Errorf("role %+v, binding %+v", role, binding)
			}
			Get(w.World, cluster, "ocp", ensure.PullSecretName, &corev1.Secret{})
			if ns := Get(w.World, cluster, "", "ocp",
				&corev1.Namespace{}); ns.Labels["openshift.io/user-monitoring"] != "false" {
				t.Errorf("the namespace is %+v", ns)
			}
			if n := w.Writes(cluster, "create", "imagestreamimports"); n != 1 {
				t.Errorf("%d imports in %s", n, cluster)
			}
			var left api.ImageStreamImportList
			w.Must(w.Clusters[cluster].Client.List(w.Ctx, &left))
			if len(left.Items) != 0 {
				t.Errorf("imports are left: %v", left.Items)
			}
		}
		w.Quiet(time.Hour)
		w.has("4.21", "sha256:2", "cli")
		time.Sleep(time.Minute)
		w.wantImage(Build01, "4.21", "cli", "sha256:2")
		w.wantImage(Build02, "4.21", "cli", "sha256:2")
		stop()
		stop = w.start()
		time.Sleep(time.Second)
		w.Quiet(time.Hour)
		stop()
	})
}

// A build cluster has the image already, from elsewhere: what is around it is made, and nothing imported.
func TestAlreadyThere(t *testing.T) {
	inDistributor(t, func(w *distributorWorld) {
		for _, cluster := range []string{Build01, Build02} {
			s := &api.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "ocp", Name: "4.21"}}
			s.Point("cli", api.TagEvent{Image: "sha256:1"})
			w.Create(cluster, s)
		}
		w.has("4.21", "sha256:1", "cli")
		stop := w.start()
		time.Sleep(time.Minute)
		for _, cluster := range []string{Build01, Build02} {
			Get(w.World, cluster, "ocp", "ci-operator-image-manager", &rbacv1.Role{})
			if n := w.Writes(cluster, "create", "imagestreamimports"); n != 0 ||
				w.Exists(cluster, "ocp", ensure.PullSecretName, &corev1.Secret{}) {
				t.Errorf("%d imports, or a pull secret for none", n)
			}
		}
		stop()
	})
}

// counts are the counters of imports that succeeded and failed.
func (w *distributorWorld) counts() (succeeded, failed float64) {
	w.Helper()
	registry := prometheus.NewRegistry()
	w.Must(registry.Register(w.o.Metrics))
	families, err := registry.Gather()
	w.Must(err)
	for _, f := range families {
		for _, m := range f.Metric {
			if strings.Contains(f.GetName(), "failed") {
				failed += m.Counter.GetValue()
			} else {
				succeeded += m.Counter.GetValue()
			}
		}
	}
	return succeeded, failed
}

// Imports fail: they are counted, and tried again with backoff until they succeed.
func TestFailedImports(t *testing.T) {
	inDistributor(t, func(w *distributorWorld) {
		w.refuse.Store(true)
		w.o.IgnoreClusters = map[string]bool{Build02: true}
		stop := w.start()
		w.has("4.21", "sha256:1", "cli")
		time.Sleep(10 * time.Second)
		succeeded, failed := w.counts()
		if tries := w.Writes(Build01, "create", "imagestreamimports"); succeeded != 0 || failed < 5 ||
			failed > 15 || failed != float64(tries) {
			t.Errorf("after ten seconds of backoff %g imports of %d failed, %g succeeded", failed, tries, succeeded)
		}
		w.refuse.Store(false)
		time.Sleep(time.Minute)
		if succeeded, _ := w.counts(); succeeded != 1 {
			t.Errorf("%g imports succeeded", succeeded)
		}
		w.wantImage(Build01, "4.21", "cli", "sha256:1")
		w.wantImage(Build02, "4.21", "cli", "")
		stop()
	})
}

// A TestImageStreamTagImport on the hub brings an image to the cluster that it names, one in a build cluster to that
// cluster.
func TestTagImports(t *testing.T) {
	inDistributor(t, func(w *distributorWorld) {
		w.inputs()
		tagImport := func(cluster, tag string) *api.TestImageStreamTagImport {
			return api.WithImportName(&api.TestImageStreamTagImport{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ci"},
				Spec: api.TestImageStreamTagImportSpec{ClusterName: cluster, Namespace: "ocp", Name: "4.21:" +
					tag},
			})
		}
		w.has("4.21", "sha256:1", "a", "b", "c")
		stop := w.start()
		time.Sleep(time.Minute)
		// Nothing is brought to build99, which does not exist: see TestUnknownCluster.
		w.Create(Hub, tagImport(Build01, "a"), tagImport("build99", "c"))
		w.Create(Build02, tagImport("whatever", "b"))
		time.Sleep(time.Minute)
		w.wantImage(Build01, "4.21", "a", "sha256:1")
		w.wantImage(Build02, "4.21", "a", "")
		w.wantImage(Build01, "4.21", "b", "")
		w.wantImage(Build02, "4.21", "b", "sha256:1")
		w.has("4.21", "sha256:2", "a", "b", "c") // each is requested in one cluster, so updates go to all
		time.Sleep(time.Minute)
		for _, cluster := range []string{Build01, Build02} {
			for _, tag := range []string{"a", "b", "c"} {
				w.wantImage(cluster, "4.21", tag, "sha256:2")
			}
		}
		w.Quiet(time.Hour)
		stop()
	})
}

// A TestImageStreamTagImport for an unknown cluster fails with a terminal error: it is not retried before it changes.
func TestUnknownCluster(t *testing.T) {
	inDistributor(t, func(w *distributorWorld) {
		w.has("4.21", "sha256:1", "cli")
		w.o.IgnoreClusters = map[string]bool{"ignored": true}
		stop := w.start()
		time.Sleep(time.Minute)
		before := w.Counted(distributor.Name)
		want := func(what string, times uint64) {
			w.Helper()
			got := w.Counted(distributor.Name)
			if got.Syncs-before.Syncs != times || got.Terminal-before.Terminal != times ||
				got.Retries != before.Retries || got.Requeues != before.Requeues {
				t.Errorf("%s: %+v, before it %+v", what, got, before)
			}
		}
		tagImport := func(cluster string) *api.TestImageStreamTagImport {
			return api.WithImportName(&api.TestImageStreamTagImport{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ci"},
				Spec:       api.TestImageStreamTagImportSpec{ClusterName: cluster, Namespace: "ocp", Name: "4.21:cli"},
			})
		}
		unknown := tagImport("build99")
		w.Create(Hub, unknown)
		w.Quiet(time.Hour)
		want("an unknown cluster", 1)
		metav1.SetMetaDataAnnotation(&unknown.ObjectMeta, "a", "b")
		w.Must(w.Client.Update(w.Ctx, unknown))
		w.Quiet(time.Hour)
		want("the tag import changes", 2)
		w.Create(Hub, tagImport("ignored"))
		w.Quiet(time.Hour)
		want("an ignored cluster", 2)
		stop()
	})
}

// What the configuration adds is one request for every build cluster; what it removes is none.
func TestConfigurationRequests(t *testing.T) {
	inDistributor(t, func(w *distributorWorld) {
		w.has("4.21", "sha256:1", "cli", "tests")
		for _, cluster := range []string{Build01, Build02} { // so that no import's end is a request, too
			s := &api.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "ocp", Name: "4.21"}}
			s.Point("cli", api.TagEvent{Image: "sha256:1"})
			s.Point("tests", api.TagEvent{Image: "sha256:1"})
			w.Create(cluster, s)
		}
		stop := w.start()
		reads := func(what string, want reconcile.Stats, tags ...string) {
			t.Helper()
			before := w.Counted(distributor.Name)
			w.inputs(tags...)
			time.Sleep(5 * time.Minute)
			if got := w.Counted(distributor.Name); got.Adds-before.Adds != want.Adds ||
				got.Syncs-before.Syncs != want.Syncs {
				t.Errorf("%s: %+v, before it %+v", what, got, before)
			}
		}
		time.Sleep(time.Minute)
		const cli, tests = "{namespace: ocp, name: '4.21', tag: cli}", "{namespace: ocp, name: '4.21', tag: tests}"
		reads("an input is added", reconcile.Stats{Adds: 2, Syncs: 2}, cli, tests)
		reads("inputs change places", reconcile.Stats{}, tests, cli)
		reads("one is removed", reconcile.Stats{}, tests)
		reads("all are removed", reconcile.Stats{})
		reads("one comes back", reconcile.Stats{Adds: 2, Syncs: 2}, cli)
		stop()
	})
}

// What the configuration adds comes to every build cluster, single tags and whole streams; what it removes stays.
func TestConfigurationChanges(t *testing.T) {
	inDistributor(t, func(w *distributorWorld) {
		w.has("4.21", "sha256:1", "cli", "tests")
		w.has("4.22", "sha256:2", "cli", "tests")
		stop := w.start()
		time.Sleep(time.Minute)
		w.wantImage(Build01, "4.21", "tests", "")
		w.inputs("{namespace: ocp, name: '4.21', tag: cli}", "{namespace: ocp, name: '4.21', tag: tests}")
		time.Sleep(time.Minute)
		for _, cluster := range []string{Build01, Build02} {
			w.wantImage(cluster, "4.21", "tests", "sha256:1")
			w.wantImage(cluster, "4.22", "tests", "")
		}
		w.Must(
			os.WriteFile(filepath.Join(w.dir, "stream.yaml"),
				[]byte("metadata: {org: o, repo: s, branch: main}\ntag_specification: {namespace: ocp, name: '4.22'}"),
				0o600),
		)
		time.Sleep(time.Minute)
		w.wantImage(Build01, "4.22", "cli", "sha256:2")
		w.wantImage(Build02, "4.22", "tests", "sha256:2")
		w.inputs()
		w.Quiet(10 * time.Minute)
		stop()
	})
}

// Source: rows of TestTestInputImageStreamTagFilterFactory and TestReconcile of openshift/ci-tools: what is always
// brought, and what never is; references are imported from where they point.
func TestAlwaysAndNever(t *testing.T) {
	inDistributor(t, func(w *distributorWorld) {
		w.inputs("{namespace: ocp, name: bad, tag: t}", "{namespace: ocp, name: ref, tag: t}")
		w.o.Tags = map[imagestreamtag.Ref]bool{{Namespace: "ocp", Stream: "one", Tag: "a"}: true}
		w.o.Streams = map[string]bool{"ocp/stream": true}
		w.o.Namespaces = map[string]bool{"team": true}
		w.o.ForbiddenRegistries = []string{"docker.io/"}
		w.has("one", "sha256:1", "a", "b")
		w.has("stream", "sha256:1", "a", "b")
		team := &api.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "any"}}
		team.Point("t", api.TagEvent{Image: "sha256:1"})
		bad := &api.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "ocp", Name: "bad"}}
		bad.Point("t", api.TagEvent{Image: "sha256:1", DockerImageReference: "docker.io/library/x"})
		ref := &api.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "ocp", Name: "ref"}}
		ref.Spec.Tags = []api.TagReference{
			{
				Name: "t", Reference: true,
				From: &api.ObjectReference{Kind: api.DockerImage, Name: "quay.io/org/image@sha256:7"},
			},
		}
		ref.Point("t", api.TagEvent{Image: "sha256:7"})
		w.Create(Hub, team, bad, ref)
		stop := w.start()
		time.Sleep(time.Minute)
		w.wantImage(Build01, "one", "a", "sha256:1")
		w.wantImage(Build01, "one", "b", "")
		w.wantImage(Build01, "stream", "a", "sha256:1")
		w.wantImage(Build02, "stream", "b", "sha256:1")
		w.wantImage(Build01, "bad", "t", "")
		w.wantImage(Build01, "ref", "t", "sha256:7")
		if s := Get(w.World, Build01, "ocp", "ref",
			&api.ImageStream{}); s.Status.Tags[0].Items[0].DockerImageReference != "quay.io/org/image@sha256:7" {
			t.Errorf("a reference was imported from %+v", s.Status.Tags)
		}
		Get(w.World, Build02, "team", "any", &api.ImageStream{})
		w.Quiet(time.Hour)
		stop()
	})
}

// One build cluster does not answer: the others get their images all the same, and it gets its own when it is back.
func TestOneClusterIsAway(t *testing.T) {
	inDistributor(t, func(w *distributorWorld) {
		back := w.Clusters[Build02].Intercept(localapi.Rule{Err: context.DeadlineExceeded})
		w.has("4.21", "sha256:1", "cli")
		stop := w.start()
		time.Sleep(2 * time.Minute)
		w.wantImage(Build01, "4.21", "cli", "sha256:1")
		back()
		w.wantImage(Build02, "4.21", "cli", "")
		time.Sleep(30 * time.Minute)
		w.wantImage(Build02, "4.21", "cli", "sha256:1")
		stop()
	})
}

// An import that a process before this one asked for: answered or not, for this image or another.
func TestLeftImports(t *testing.T) {
	inDistributor(t, func(w *distributorWorld) {
		w.has("4.21", "sha256:1", "cli")
		for n := range 3 {
			stop := w.start()
			time.Sleep([]time.Duration{0, 5 * time.Millisecond, time.Second}[n])
			stop()
			w.has("4.21", fmt.Sprint("sha256:", n+2), "cli")
		}
		stop := w.start()
		time.Sleep(time.Minute)
		w.wantImage(Build01, "4.21", "cli", "sha256:4")
		w.wantImage(Build02, "4.21", "cli", "sha256:4")
		w.Quiet(time.Hour)
		stop()
	})
	inDistributor(t, func(w *distributorWorld) { // one that nobody has answered
		wrong := &api.ImageStreamImport{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ocp", Name: "distributed-" +
					fmt.Sprintf("%x", sha256.Sum256([]byte("ocp/4.21:cli")))[:20],
				Labels: map[string]string{api.CreatedByLabel: distributor.Name},
			},
			Spec: api.ImageStreamImportSpec{Stream: "4.21", Images: []api.ImageImportSpec{{
				From: api.ObjectReference{Kind: api.DockerImage, Name: "elsewhere@sha256:0"},
				To:   api.LocalReferenceTo{Name: "cli"},
			}}},
		}
		w.Create(Build01, wrong)
		w.has("4.21", "sha256:1", "cli")
		stop := w.start()
		time.Sleep(time.Minute)
		w.wantImage(Build01, "4.21", "cli", "sha256:1")
		if w.Exists(Build01, "ocp", wrong.Name, &api.ImageStreamImport{}) {
			t.Error("the wrong import is still there")
		}
		stop()
	})
}
