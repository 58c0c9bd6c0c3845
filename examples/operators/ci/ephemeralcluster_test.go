package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/ephemeralcluster"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// ecWorld is a hub and a build cluster, with the controllers when they run.
type ecWorld struct {
	*World
	o ephemeralcluster.Options
	// name is that of the cluster that a row of a test is about.
	name string
}

// row is the world for another cluster, of the n-th row, whose failures say which that is.
func (w *ecWorld) row(n int) *ecWorld {
	return &ecWorld{w.World, w.o, fmt.Sprint("ec", n)}
}

func inClusters(t *testing.T, test func(w *ecWorld)) {
	t.Helper()
	inWithBookmarks(t, 24*time.Hour, test)
}

// inLossy is in where it is not known what was applied, since an answer was lost or is an error: a bookmark a minute
// tells.
func inLossy(t *testing.T, test func(w *ecWorld)) {
	t.Helper()
	inWithBookmarks(t, time.Minute, test)
}

func inWithBookmarks(t *testing.T, every time.Duration, test func(w *ecWorld)) {
	t.Helper()
	InWithBookmarks(t, every, func(w *World) {
		test(&ecWorld{w, ephemeralcluster.Options{
			Profiles: map[string][]ephemeralcluster.Owner{
				"aws":  {{Cluster: "k1", Tenant: "team-a"}},
				"free": nil,
			},
			PrivilegedTenants: []string{"root"},
		}, "ec"})
	}, Hub, Build01)
}

// start starts a life of the controllers.
func (w *ecWorld) start() (stop func()) {
	w.Helper()
	f := w.Fleet()
	w.Must(ephemeralcluster.Add(f, w.o))
	return w.Go(f.Run)
}

// request is the EphemeralCluster that a user creates.
func (w *ecWorld) request(change ...func(*api.EphemeralCluster)) *api.EphemeralCluster {
	ec := &api.EphemeralCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: ephemeralcluster.Namespace, Name: w.name,
		Annotations: map[string]string{
			api.KonfluxClusterAnnotation: "k1", api.KonfluxTenantAnnotation: "team-a",
		},
	}}
	ec.Spec.CIOperator.Releases = map[string]runtime.RawExtension{
		"latest": {Raw: []byte(`{"release":{"channel":"stable","version":"4.21"}}`)},
	}
	ec.Spec.CIOperator.Test = api.TestSpec{Workflow: "ipi-aws", ClusterProfile: "aws"}
	for _, f := range change {
		f(ec)
	}
	return ec
}

func (w *ecWorld) cluster() *api.EphemeralCluster {
	w.Helper()
	return Get(w.World, Hub, ephemeralcluster.Namespace, w.name, &api.EphemeralCluster{})
}

// jobs are those for the cluster.
func (w *ecWorld) jobs() (jobs []api.ProwJob) {
	w.Helper()
	for _, job := range w.Jobs() {
		if job.Labels[api.EphemeralClusterLabel] == w.name {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// job is the only job.
func (w *ecWorld) job() *api.ProwJob {
	w.Helper()
	jobs := w.jobs()
	if len(jobs) != 1 {
		w.Fatalf("%d ProwJobs, want 1", len(jobs))
	}
	return &jobs[0]
}

// change changes the cluster as a person does.
func (w *ecWorld) change(f func(*api.EphemeralCluster)) {
	w.Helper()
	ec := w.cluster()
	f(ec)
	w.Must(w.Client.Update(w.Ctx, ec))
}

func (w *ecWorld) finish(state api.ProwJobState) {
	w.Helper()
	job := w.job()
	job.Finish(state, "")
	w.Must(w.Client.Status().Update(w.Ctx, job))
}

// runs makes the namespace that the job runs in.
func (w *ecWorld) runs() {
	w.Helper()
	w.Create(Build01,
		&corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{
				Name:   "ci-op-" + w.name,
				Labels: map[string]string{api.JobIDLabel: w.job().Name},
			},
		})
}

func (w *ecWorld) provides(secret, key string) {
	w.Helper()
	w.Create(Build01,
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ci-op-" + w.name, Name: secret},
			Data:       map[string][]byte{key: []byte("of " + secret)},
		})
}

func (w *ecWorld) signalled() bool {
	return w.Exists(Build01, "ci-op-"+w.name, ephemeralcluster.DoneSignal, &corev1.Secret{})
}

// describe is a cluster in one line: its phase, conditions, and whether it has the finalizer.
func describe(ec *api.EphemeralCluster) string {
	text := string(ec.Status.Phase)
	for _, c := range ec.Status.Conditions {
		text += fmt.Sprintf(" %s=%s(%s)", c.Type, c.Status, c.Reason)
	}
	if controllerutil.ContainsFinalizer(ec, api.DependentProwJobFinalizer) {
		text += " +finalizer"
	}
	return text
}

func (w *ecWorld) want(want string) {
	w.Helper()
	if got := describe(w.cluster()); got != want {
		w.Errorf("%s is\n  %s\nwant\n  %s", w.name, got, want)
	}
}

const (
	fetching = "Provisioning ClusterReady=False(SecretsFetchFailure) ProwJobCreating=False(ProwJobCreated) +finalizer"
	ready    = "Ready ClusterReady=True(ClusterReady) ProwJobCreating=False(ProwJobCreated) +finalizer"
)

// A whole life: created, one job; credentials, ready; not needed, signal; the job succeeds, the finalizer goes. In
// between, and afterwards, nothing is written while nothing happens.
func TestLife(t *testing.T) {
	inClusters(t, func(w *ecWorld) {
		stop := w.start()
		w.Create(Hub, w.request())
		time.Sleep(time.Second)
		w.want(fetching)
		job := w.job()
		if ec := w.cluster(); ec.Status.ProwJobID != job.Name || job.Spec.Cluster != Build01 ||
			job.Spec.Args[0] != "--input-hash="+w.name {
			t.Errorf("the cluster names job %q; the job is %+v", ec.Status.ProwJobID, job.Spec)
		}
		if c := conditions.Get(w.cluster().Status.Conditions,
			api.ClusterReady); c.Message != api.NamespaceNotFoundMessage {
			t.Errorf("message %q", c.Message)
		}
		w.runs()
		time.Sleep(61 * time.Second)
		if c := conditions.Get(w.cluster().Status.Conditions,
			api.ClusterReady); c.Message != api.KubeconfigNotReadyMessage {
			t.Errorf("message %q", c.Message)
		}
		w.Quiet(time.Hour)
		w.provides(ephemeralcluster.Credentials, "kubeconfig")
		time.Sleep(61 * time.Second)
		w.want(ready)
		secret := Get(w.World, Hub, ephemeralcluster.Namespace, w.cluster().Status.SecretRef,
			&corev1.Secret{})
		if string(secret.Data["kubeconfig"]) != "of cluster-provisioning" ||
			!metav1.IsControlledBy(secret, w.cluster()) || secret.Name != w.name+"-credentials" {
			t.Errorf("the credentials are %+v", secret)
		}
		w.Quiet(24 * time.Hour)
		w.change(func(ec *api.EphemeralCluster) { ec.Spec.TearDownCluster = true })
		time.Sleep(time.Second)
		const down = "Deprovisioning ClusterReady=True(ClusterReady) ProwJobCreating=False(ProwJobCreated) " +
			"TestCompleted=True(TestCompleted) +finalizer"
		if w.want(down); !w.signalled() {
			t.Error("nobody told the job that the test is over")
		}
		w.change(func(ec *api.EphemeralCluster) { ec.Spec.TearDownCluster = false }) // too late
		time.Sleep(time.Second)
		w.Quiet(time.Hour)
		w.want(down)
		w.finish(api.SuccessState)
		time.Sleep(time.Second)
		w.want(
			"Deprovisioned ClusterReady=True(ClusterReady) ProwJobCompleted=True(ProwJobCompleted) " +
				"ProwJobCreating=False(ProwJobCreated) TestCompleted=True(TestCompleted)",
		)
		w.Quiet(24 * time.Hour)
		if jobs, writes := w.Writes(Hub, "create", "prowjobs"),
			len(w.Clusters[Hub].Audit().Writes()); jobs != 0 || writes != 0 {
			t.Errorf("%d jobs, %d writes", jobs, writes)
		}
		stop()
	})
}

// The process dies between the creation of the job and the write of the status, on which its answers are lost: the
// next one binds the job that there is.
func TestCrashAfterTheJobWasCreated(t *testing.T) {
	inLossy(t, func(w *ecWorld) {
		remove := w.Clusters[Hub].Intercept(
			localapi.Rule{
				Verb: "patch", Resource: "ephemeralclusters", Subresource: "status",
				Err: context.DeadlineExceeded,
			},
		)
		stop := w.start()
		w.Create(Hub, w.request())
		time.Sleep(time.Second)
		stop()
		w.want(" +finalizer")
		first := w.job().Name
		remove()
		stop = w.start()
		time.Sleep(2 * time.Minute)
		w.want(fetching)
		if w.job().Name != first || w.cluster().Status.ProwJobID != first {
			t.Errorf("job %s took the place of %s", w.job().Name, first)
		}
		stop()
	})
}

// The answer to the creation of the job is lost, and the watch is late: there is one job all the same.
func TestLostAnswer(t *testing.T) {
	inLossy(t, func(w *ecWorld) {
		w.Clusters[Hub].Intercept(
			localapi.Rule{Verb: "create", Resource: "prowjobs", Nth: 1, Applied: true, Err: context.DeadlineExceeded},
		)
		stop := w.start()
		w.Create(Hub, w.request())
		time.Sleep(5 * time.Minute)
		w.want(fetching)
		w.job()
		stop()
	})
}

// Source: rows of TestReconcileCreateProwJob of openshift/ci-tools.
func TestBegin(t *testing.T) {
	job := func(w *ecWorld, name string) *api.ProwJob {
		return &api.ProwJob{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ci", Name: w.name + name,
				Labels: map[string]string{api.EphemeralClusterLabel: w.name},
			},
			Spec: api.ProwJobSpec{Type: api.PeriodicJob, Job: name, Cluster: Build01},
		}
	}
	ofEarlier := func(w *ecWorld) []*api.ProwJob {
		j := job(w, "old")
		j.Annotations = map[string]string{"ci.openshift.io/ephemeral-cluster-uid": "another"}
		j.Status.State = api.AbortedState
		return []*api.ProwJob{j}
	}
	const invalid = "Failed ProwJobCreating=False(EphemeralClusterValidationFailure)"
	rows := []struct {
		name   string
		change func(*api.EphemeralCluster)
		jobs   func(*ecWorld) []*api.ProwJob
		want   string
		count  int
	}{
		{"an owner of the profile", nil, nil, fetching, 1},
		{
			"not an owner of the profile",
			func(ec *api.EphemeralCluster) { ec.Annotations[api.KonfluxTenantAnnotation] = "team-b" }, nil, invalid, 0,
		},
		{
			"the tenant of another Konflux cluster",
			func(ec *api.EphemeralCluster) { ec.Annotations[api.KonfluxClusterAnnotation] = "k2" }, nil, invalid, 0,
		},
		{
			"no such profile", func(ec *api.EphemeralCluster) { ec.Spec.CIOperator.Test.ClusterProfile = "gcp" }, nil,
			invalid, 0,
		},
		{
			"neither profile nor claim", func(ec *api.EphemeralCluster) { ec.Spec.CIOperator.Test.ClusterProfile = "" },
			nil, invalid, 0,
		},
		{
			"a profile for everybody",
			func(ec *api.EphemeralCluster) { ec.Spec.CIOperator.Test.ClusterProfile, ec.Annotations = "free", nil },
			nil, fetching, 1,
		},
		{
			"a privileged tenant",
			func(ec *api.EphemeralCluster) { ec.Annotations[api.KonfluxTenantAnnotation] = "root" }, nil, fetching, 1,
		},
		{"a claim needs no profile and no release", func(ec *api.EphemeralCluster) {
			ec.Spec.CIOperator.Test.ClusterProfile, ec.Annotations, ec.Spec.CIOperator.Releases = "", nil, nil
			ec.Spec.CIOperator.Test.ClusterClaim = &runtime.RawExtension{Raw: []byte(`{"version":"4.21"}`)}
		}, nil, fetching, 1},
		{
			"no release", func(ec *api.EphemeralCluster) { ec.Spec.CIOperator.Releases = nil }, nil,
			"Failed ProwJobCreating=True(CIOperatorJobsGenerateFailure)", 0,
		},
		{
			"a job that there is",
			nil, func(w *ecWorld) []*api.ProwJob { return []*api.ProwJob{job(w, "one")} }, fetching, 1,
		},
		{
			"two jobs", nil, func(w *ecWorld) []*api.ProwJob { return []*api.ProwJob{job(w, "one"), job(w, "two")} },
			"Failed ProwJobCreating=False(TooManyProwJobsBound)", 2,
		},
		{"the job of an earlier one", nil, ofEarlier, fetching, 2},
	}
	inClusters(t, func(all *ecWorld) {
		for n, c := range rows {
			w := all.row(n)
			if c.jobs != nil {
				for _, j := range c.jobs(w) {
					w.Create(Hub, j)
				}
			}
			ec := w.request()
			if c.change != nil {
				c.change(ec)
			}
			w.Create(Hub, ec)
		}
		stop := all.start()
		time.Sleep(2 * time.Minute)
		for n, c := range rows {
			w := all.row(n)
			if got := describe(w.cluster()); got != c.want || len(w.jobs()) != c.count {
				t.Errorf("%s: %s, %d jobs; want %s, %d", c.name, got, len(w.jobs()), c.want, c.count)
			}
		}
		all.Quiet(time.Hour)
		stop()
	})
}

// Errors of the API are tried again, and are in the status meanwhile; what was invalid is looked at again when it was
// changed.
func TestSecondThoughts(t *testing.T) {
	inLossy(t, func(w *ecWorld) {
		remove := w.Clusters[Hub].Intercept(
			localapi.Rule{Verb: "create", Resource: "prowjobs", Err: apierrors.NewInternalError(fmt.Errorf("no disk"))},
		)
		stop := w.start()
		w.Create(Hub, w.request())
		time.Sleep(time.Second)
		w.want(" ProwJobCreating=True(CIOperatorJobsGenerateFailure) +finalizer")
		remove()
		time.Sleep(2 * time.Minute)
		w.want(fetching)
		w.Create(Hub,
			w.request(
				func(ec *api.EphemeralCluster) { ec.Name, ec.Spec.CIOperator.Test.ClusterProfile = "second", "gcp" },
			))
		time.Sleep(time.Second)
		second := func() *api.EphemeralCluster {
			return Get(w.World, Hub, ephemeralcluster.Namespace, "second", &api.EphemeralCluster{})
		}
		ec := second()
		if ec.Status.Phase != api.Failed {
			t.Errorf("phase %s", ec.Status.Phase)
		}
		ec.Spec.CIOperator.Test.ClusterProfile = "free"
		w.Must(w.Client.Update(w.Ctx, ec))
		time.Sleep(time.Second)
		if got := describe(second()); got != fetching {
			t.Errorf("after the correction: %s", got)
		}
		stop()
	})
}

// Source: rows of TestReconcile of openshift/ci-tools: what becomes of a cluster whose job goes on, and ends.
func TestFollow(t *testing.T) {
	failed := func(reason string) string {
		return "Failed ClusterReady=False(SecretsFetchFailure) ProwJobCompleted=True(" + reason +
			") ProwJobCreating=False(ProwJobCreated)"
	}
	rows := map[string]struct {
		claim bool
		event func(w *ecWorld)
		want  string
	}{
		"the job fails": {
			event: func(w *ecWorld) { w.finish(api.FailureState) },
			want:  failed("ProwJobFailure"),
		},
		"the job is aborted": {
			event: func(w *ecWorld) { w.finish(api.AbortedState) },
			want:  failed("ProwJobFailure"),
		},
		"the job errs": {event: func(w *ecWorld) { w.finish(api.ErrorState) }, want: failed("ProwJobFailure")},
		"the job succeeds early": {
			event: func(w *ecWorld) { w.finish(api.SuccessState) },
			want: "Deprovisioned ClusterReady=False(SecretsFetchFailure) ProwJobCompleted=True(ProwJobCompleted) " +
				"ProwJobCreating=False(ProwJobCreated)",
		},
		"the job is deleted": {
			event: func(w *ecWorld) { w.Must(w.Client.Delete(w.Ctx, w.job())) },
			want:  failed("ProwJobFailure"),
		},
		"the job moves to a cluster that nobody knows": {event: func(w *ecWorld) {
			job := w.job()
			job.Spec.Cluster = "build99"
			w.Must(w.Client.Update(w.Ctx, job))
		}, want: failed("ProwJobFailure")},
		"a namespace that goes away": {event: func(w *ecWorld) {
			w.Seed(Build01, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: "ci-op-" + w.name, Labels: map[string]string{api.JobIDLabel: w.job().Name},
				DeletionTimestamp: &metav1.Time{Time: time.Now()}, Finalizers: []string{"a/b"},
			}})
		}, want: fetching},
		"a kubeconfig without content": {event: func(w *ecWorld) {
			w.runs()
			w.provides(ephemeralcluster.Credentials, "something")
		}, want: fetching},
		"half of what Hive makes": {claim: true, event: func(w *ecWorld) {
			w.runs()
			w.provides("cluster-provisioning-hive-admin-kubeconfig", "kubeconfig")
		}, want: fetching},
		"all of what Hive makes": {claim: true, event: func(w *ecWorld) {
			w.runs()
			w.provides("cluster-provisioning-hive-admin-kubeconfig", "kubeconfig")
			w.provides("cluster-provisioning-hive-admin-password", "password")
		}, want: ready},
		"somebody else's secret": {event: func(w *ecWorld) {
			w.Create(Hub,
				&corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: ephemeralcluster.Namespace, Name: w.name + "-credentials"},
				})
			w.runs()
			w.provides(ephemeralcluster.Credentials, "kubeconfig")
		}, want: fetching},
		"torn down before it runs": {
			event: func(w *ecWorld) { w.change(func(ec *api.EphemeralCluster) { ec.Spec.TearDownCluster = true }) },
			want: "Provisioning ClusterReady=False(SecretsFetchFailure) ProwJobCreating=False(ProwJobCreated) " +
				"TestCompleted=False(CreateTestCompletedSecretFailure) +finalizer",
		},
	}
	inClusters(t, func(all *ecWorld) {
		stop := all.start()
		for n, name := range slices.Sorted(maps.Keys(rows)) {
			w, c := all.row(n), rows[name]
			w.Create(Hub, w.request(func(ec *api.EphemeralCluster) {
				if c.claim {
					ec.Spec.CIOperator.Test.ClusterClaim = &runtime.RawExtension{Raw: []byte(`{"version":"4.21"}`)}
				}
			}))
			time.Sleep(time.Second)
			c.event(w)
			time.Sleep(2 * time.Minute)
			if got := describe(w.cluster()); got != c.want {
				t.Errorf("%s:\n  %s, want\n  %s", name, got, c.want)
			}
			if strings.HasPrefix(name, "the job moves") && w.job().Status.State != api.AbortedState {
				t.Errorf("%s: the job is %+v", name, w.job().Status)
			}
		}
		stop()
	})
}

// Source: rows of TestReconcileDeleteEphemeralCluster of openshift/ci-tools.
func TestDelete(t *testing.T) {
	rows := map[string]struct {
		before  func(w *ecWorld)
		gone    bool // at once
		aborted bool
	}{
		"while there is no ci-operator namespace": {gone: true, aborted: true},
		"the job is gone": {
			before: func(w *ecWorld) { w.Must(w.Client.Delete(w.Ctx, w.job())) }, gone: true,
		},
		"the job has ended": {before: func(w *ecWorld) { w.finish(api.SuccessState) }, gone: true},
		"the job runs":      {before: (*ecWorld).runs},
		"no client of the build cluster": {before: func(w *ecWorld) {
			job := w.job()
			job.Spec.Cluster = "build99"
			w.Must(w.Client.Update(w.Ctx, job))
		}, gone: true, aborted: true},
	}
	inClusters(t, func(all *ecWorld) {
		for n, name := range slices.Sorted(maps.Keys(rows)) {
			w, c := all.row(n), rows[name]
			stop := w.start()
			w.Create(Hub, w.request())
			time.Sleep(time.Second)
			stop()
			if c.before != nil {
				c.before(w)
			}
			w.Must(w.Client.Delete(w.Ctx, w.request()))
			stop = w.start()
			time.Sleep(time.Second)
			gone := func() bool {
				return !w.Exists(Hub, ephemeralcluster.Namespace, w.name, &api.EphemeralCluster{})
			}
			if gone() != c.gone {
				t.Errorf("%s: gone: %t, want %t", name, gone(), c.gone)
			}
			if jobs := w.jobs(); len(jobs) == 1 && (jobs[0].Status.State == api.AbortedState) != c.aborted {
				t.Errorf("%s: the job is %+v", name, jobs[0].Status)
			} else if c.aborted && !strings.HasPrefix(jobs[0].Status.Description, "EphemeralCluster being deleted: ") {
				t.Errorf("%s: it was aborted because of %q", name, jobs[0].Status.Description)
			}
			if !c.gone {
				if !w.signalled() {
					t.Errorf("%s: nobody told the job", name)
				}
				w.Quiet(time.Hour)
				w.finish(api.SuccessState)
				time.Sleep(time.Second)
				if !gone() {
					t.Errorf("%s: the job has ended, and the cluster is still there", name)
				}
			}
			stop()
		}
	})
}

// The process died between the creation of the job and the status, and the cluster is deleted before the next one
// begins.
func TestDeleteAfterCrash(t *testing.T) {
	inLossy(t, func(w *ecWorld) {
		w.Clusters[Hub].Intercept(
			localapi.Rule{
				Verb: "patch", Resource: "ephemeralclusters", Subresource: "status",
				Err: context.DeadlineExceeded,
			},
		)
		stop := w.start()
		w.Create(Hub, w.request())
		time.Sleep(time.Second)
		stop()
		w.Must(w.Client.Delete(w.Ctx, w.request()))
		stop = w.start()
		time.Sleep(time.Second)
		if w.Exists(Hub, ephemeralcluster.Namespace, w.name, &api.EphemeralCluster{}) ||
			w.job().Status.State != api.AbortedState {
			t.Errorf("the job is %+v", w.job().Status)
		}
		stop()
	})
}

// Source: rows of TestReconcileProwJob of openshift/ci-tools: the finalizer was stripped by hand.
func TestOrphans(t *testing.T) {
	rows := map[string]struct {
		before             func(w *ecWorld)
		aborted, signalled bool
	}{
		"no namespace": {aborted: true},
		"a namespace":  {before: (*ecWorld).runs, signalled: true},
		"a namespace, signalled already": {before: func(w *ecWorld) {
			w.runs()
			w.provides(ephemeralcluster.DoneSignal, "x")
		}, signalled: true},
		"the job has ended": {before: func(w *ecWorld) { w.finish(api.FailureState) }},
		"no client of the build cluster": {before: func(w *ecWorld) {
			job := w.job()
			job.Spec.Cluster = "build99"
			w.Must(w.Client.Update(w.Ctx, job))
		}},
	}
	inClusters(t, func(all *ecWorld) {
		n := 0
		for _, name := range slices.Sorted(maps.Keys(rows)) {
			for _, away := range []bool{false, true} { // the controllers, when it happens
				if !away && name == "no client of the build cluster" {
					continue // they would notice that before
				}
				n++
				w, c := all.row(n), rows[name]
				stop := w.start()
				w.Create(Hub, w.request())
				time.Sleep(time.Second)
				if away {
					stop()
				}
				if c.before != nil {
					c.before(w)
				}
				w.strip()
				if away {
					stop = w.start()
				}
				time.Sleep(time.Second)
				job := w.job()
				if (job.Status.State == api.AbortedState) != c.aborted || c.aborted &&
					!strings.HasPrefix(job.Status.Description, "Ephemeral Cluster not found") {
					t.Errorf("%s: the job is %+v", name, job.Status)
				}
				if w.signalled() != c.signalled {
					t.Errorf("%s: signalled: %t", name, w.signalled())
				}
				w.Quiet(time.Hour)
				if s := w.Counted(ephemeralcluster.OrphansName); name == "no client of the build cluster" &&
					(s.Terminal != 1 || s.Retries != 0) {
					t.Errorf("%s: in an hour, %+v", name, s)
				}
				stop()
			}
		}
	})
}

// The watch of the build cluster is late, and does not tell that the job's namespace is there: the job is told to end
// all the same, and not aborted.
func TestLateNamespace(t *testing.T) {
	ends := map[string]func(*ecWorld){
		"deleted":  func(w *ecWorld) { w.Must(w.Client.Delete(w.Ctx, w.request())) },
		"stripped": (*ecWorld).strip,
	}
	inClusters(t, func(all *ecWorld) {
		all.Clusters[Build01].Intercept(localapi.Rule{
			Verb: "watch", Resource: "namespaces",
			Do: func(ctx context.Context, _ *gate.Request) gate.Verdict {
				<-ctx.Done()
				return gate.Verdict{}
			},
		})
		stop := all.start()
		for n, how := range slices.Sorted(maps.Keys(ends)) {
			w := all.row(n)
			w.Create(Hub, w.request())
			time.Sleep(time.Second)
			w.runs()
			ends[how](w)
			time.Sleep(time.Second)
			if job := w.job(); !w.signalled() || job.Complete() {
				t.Errorf("%s: signalled: %t; the job is %+v", how, w.signalled(), job.Status)
			}
		}
		stop()
	})
}

// strip deletes the cluster without its finalizer, as a person in a hurry does.
func (w *ecWorld) strip() {
	w.Helper()
	c := w.Clusters[Hub].Client
	ec := w.request()
	w.Must(controllerutil.RetryOnConflict(w.Ctx, c, ec, func() error {
		ec.Finalizers = nil
		return nil
	}))
	w.Must(c.Delete(w.Ctx, ec))
}

// Source: TestEphemeralClusterFilter, TestProwJobFilter of openshift/ci-tools: what is elsewhere, or not ours, is
// left alone; and changes of status do not wake anybody.
func TestFilters(t *testing.T) {
	inClusters(t, func(w *ecWorld) {
		stop := w.start()
		w.Create(Hub, w.request(func(ec *api.EphemeralCluster) { ec.Namespace = "team" }),
			&api.ProwJob{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "other"},
				Spec:       api.ProwJobSpec{Type: api.PeriodicJob, Job: "j"},
			},
			&api.ProwJob{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "team", Name: "elsewhere",
					Labels: map[string]string{api.EphemeralClusterLabel: "x"},
				},
				Spec: api.ProwJobSpec{Type: api.PeriodicJob, Job: "j", Cluster: Build01},
			})
		synctest.Wait()
		w.Quiet(time.Hour)
		if reads := w.Clusters[Build01].Audit().Entries(
			func(e audit.Entry) bool { return e.Resource == "secrets" },
		); len(reads) != 0 {
			t.Errorf("somebody looked after them: %v", reads)
		}
		stop()
	})
}

// A cluster is torn down in the second in which its time to live is over, be it its own or the operator's, and not
// written to before. What nobody made in time is not begun.
func TestTimeToLive(t *testing.T) {
	inClusters(t, func(w *ecWorld) {
		w.o.TimeToLive = 3 * time.Hour
		hour := func(ec *api.EphemeralCluster) { ec.Spec.TimeToLive = &metav1.Duration{Duration: time.Hour} }
		w.Create(Hub, w.row(0).request(hour))
		time.Sleep(2 * time.Hour)
		stop := w.start()
		defer stop()
		time.Sleep(time.Second)
		w.row(0).want("Failed ProwJobCreating=False(TimeToLiveOver)")
		if jobs := w.row(0).jobs(); len(jobs) > 0 {
			t.Errorf("a job was begun too late: %v", jobs)
		}
		zero := func(ec *api.EphemeralCluster) { ec.Spec.TimeToLive = &metav1.Duration{} }
		w.Create(Hub, w.row(1).request(hour), w.row(2).request(), w.row(3).request(zero))
		time.Sleep(time.Second)
		w.row(3).want("Failed ProwJobCreating=False(EphemeralClusterValidationFailure)")
		for _, row := range []*ecWorld{w.row(1), w.row(2)} {
			row.runs()
			row.provides(ephemeralcluster.Credentials, "kubeconfig")
		}
		time.Sleep(61 * time.Second)
		w.row(1).want(ready)
		w.Quiet(time.Hour - 63*time.Second)
		time.Sleep(2 * time.Second)
		const over = "Deprovisioning ClusterReady=True(ClusterReady) ProwJobCreating=False(ProwJobCreated) " +
			"TestCompleted=True(TimeToLiveOver) +finalizer"
		if w.row(1).want(over); !w.row(1).signalled() {
			t.Error("nobody told the job that the time is over")
		}
		c := conditions.Get(w.row(1).cluster().Status.Conditions, api.TestCompleted)
		if want := "the time to live of 1h0m0s is over"; c.Message != want {
			t.Errorf("the message is %q, want %q", c.Message, want)
		}
		w.row(2).want(ready)
		time.Sleep(2 * time.Hour)
		w.row(2).want(over)
		w.row(2).finish(api.SuccessState)
		time.Sleep(time.Second)
		w.Quiet(24 * time.Hour)
	})
}
