package main

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/importcleaner"
)

const day = 24 * time.Hour

func seed(w *World, cluster, name string, age time.Duration) {
	w.Helper()
	w.Seed(cluster, &api.TestImageStreamTagImport{
		TypeMeta: metav1.TypeMeta{APIVersion: api.CIGroup.String(), Kind: "TestImageStreamTagImport"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ci", Name: name,
			CreationTimestamp: metav1.NewTime(time.Now().Add(-age)),
		},
		Spec: api.TestImageStreamTagImportSpec{Namespace: "ocp", Name: "4.21:cli"},
	})
}

// start starts a process that cleans both clusters.
func start(w *World) (stop func()) {
	w.Helper()
	f := w.Fleet()
	for _, c := range f.All() {
		w.Must(importcleaner.Add(c))
	}
	return w.Go(f.Run)
}

func has(w *World, cluster, name string) bool {
	w.Helper()
	return w.Exists(cluster, "ci", name, &api.TestImageStreamTagImport{})
}

// Source: TestReconcile of pkg/controller/testimagestreamimportcleaner of openshift/ci-tools; and the seconds, a
// restart, and one that is deleted by hand before its time.
func TestClean(t *testing.T) {
	In(t, func(w *World) {
		seed(w, Hub, "old", 8*day)
		seed(w, Hub, "almost", 7*day-time.Second)
		seed(w, Hub, "young", 6*day)
		seed(w, Hub, "by-hand", 7*day-time.Hour)
		seed(w, Build01, "young", 5*day)
		stop := start(w)
		time.Sleep(500 * time.Millisecond)
		if has(w, Hub, "old") || !has(w, Hub, "almost") {
			t.Error("after half a second, the old one is there or the other is not")
		}
		time.Sleep(1500 * time.Millisecond)
		if has(w, Hub, "almost") {
			t.Error("one that got old is there a second later")
		}
		w.Must(
			w.Client.Delete(w.Ctx,
				&api.TestImageStreamTagImport{ObjectMeta: metav1.ObjectMeta{Namespace: "ci", Name: "by-hand"}}),
		)
		w.Quiet(12 * time.Hour)
		if s := w.Counted(importcleaner.Name); s.Errors != 0 {
			t.Errorf("one is not there when its time has come, and somebody minds: %+v", s)
		}
		stop()
		time.Sleep(6 * time.Hour) // nobody is there
		stop = start(w)
		w.Quiet(6*time.Hour - time.Minute)
		time.Sleep(2 * time.Minute)
		if has(w, Hub, "young") || !has(w, Build01, "young") {
			t.Error("a day later, the hub's is there or the build cluster's is not")
		}
		time.Sleep(day)
		if has(w, Build01, "young") {
			t.Error("the build cluster's is there two days later")
		}
		if hub, build := w.Writes(Hub, "delete", "testimagestreamtagimports"),
			w.Writes(Build01, "delete", "testimagestreamtagimports"); hub != 1 || build != 1 {
			t.Errorf("%d and %d deletions since the quiet", hub, build)
		}
		stop()
	}, Hub, Build01)
}
