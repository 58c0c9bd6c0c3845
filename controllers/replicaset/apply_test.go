package replicaset

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/reconcile"
)

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, slowStartBatch (TestSlowStartBatch)
func TestCreateBatchesDoubleUntilOneFails(t *testing.T) {
	quota := errors.New("exceeded quota")
	tests := []struct {
		name     string
		replicas int32
		fail     func(n int) bool
		tries    int
		created  int
		message  string
	}{
		{"none fails", 11, func(int) bool { return false }, 11, 11, ""},
		{"the first fails", 11, func(int) bool { return true }, 1, 0, "exceeded quota"},
		{"the second batch fails", 11, func(n int) bool { return n >= 1 }, 3, 1, "exceeded quota"},
		{
			"one of the third batch fails: the batch is finished", 11, func(n int) bool { return n == 4 }, 7, 6,
			"exceeded quota",
		},
		{"one of the last batch fails", 11, func(n int) bool { return n == 10 }, 11, 10, "exceeded quota"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, newSet(tt.replicas))
			f.refuse = func(n int) error {
				if tt.fail(n) {
					return quota
				}
				return nil
			}
			_, err := f.sync(t.Context())
			if (err != nil) != (tt.message != "") || (err != nil && err.Error() != quota.Error()) {
				t.Errorf("error = %v", err)
			}
			equal(t, "tries", f.named, tt.tries)
			equal(t, "created", len(f.podsOnServer(t)), tt.created)
			equal(t, "waits for the cache", f.client.Seen(newSet(0).UID) != nil, tt.created > 0)
			failures := slices.DeleteFunc(f.recorder.events,
				func(e string) bool { return strings.HasPrefix(e, "Normal") })
			if len(failures) != tt.tries-tt.created {
				t.Errorf("events = %q", failures)
			}
			for _, e := range failures {
				equal(t, "event", e, "Warning FailedCreate Error creating: exceeded quota")
			}
			if tt.message != "" {
				c := f.status(t).Conditions[0]
				equal(t, "condition", []string{string(c.Type), string(c.Status), c.Reason, c.Message},
					[]string{"ReplicaFailure", "True", "FailedCreate", tt.message})
			}
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set_test.go, TestControllerBurstReplicas, and
// BurstReplicas
func TestBurst(t *testing.T) {
	f := newFixture(t, newSet(600))
	f.mustSync(t)
	equal(t, "created at once", len(f.podsOnServer(t)), 500)
	f.show(t)
	f.mustSync(t)
	equal(t, "created in the end", len(f.podsOnServer(t)), 600)
}

// A permanent refusal of a pod is still a failure: the next success removes the condition.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set_test.go, TestSyncReplicaSetCreateFailures
func TestReplicaFailureGoesWithSuccess(t *testing.T) {
	f := newFixture(t, newSet(1))
	f.refuse = func(n int) error {
		if n == 0 {
			return errors.New("no")
		}
		return nil
	}
	if _, err := f.sync(t.Context()); err == nil {
		t.Fatal("no error")
	}
	equal(t, "conditions", len(f.status(t).Conditions), 1)
	f.show(t)
	f.mustSync(t)
	equal(t, "conditions", len(f.status(t).Conditions), 0)
}

func namespaceTerminating() error {
	err := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "",
		errors.New("namespace ns is being terminated"))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes,
		metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
	return err
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, manageReplicas, and
// pkg/controller/controller_utils.go, createPods
func TestNamespaceTerminating(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, newSet(11))
		f.refuse = func(int) error { return namespaceTerminating() }
		f.mustSync(t)
		equal(t, "tries", f.named, 1)
		equal(t, "events", f.recorder.events, nil)
		equal(t, "conditions", len(f.status(t).Conditions), 0)

		f.show(t)
		equal(t, "result", f.mustSync(t), reconcile.Result{RequeueAfter: recheck})
		equal(t, "tries when asked again", f.named, 1)

		time.Sleep(5*time.Minute + 1)
		f.mustSync(t)
		equal(t, "tries later", f.named, 2)
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, createPods
func TestTemplateWithoutLabels(t *testing.T) {
	set := newSet(1, func(s *appsv1.ReplicaSet) {
		s.Spec.Selector = &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "app", Operator: metav1.LabelSelectorOpDoesNotExist},
			},
		}
		s.Spec.Template.Labels = nil
	})
	f := newFixture(t, set)
	if _, err := f.sync(t.Context()); !errors.Is(err, errNoLabels) {
		t.Errorf("error = %v", err)
	}
	equal(t, "events", f.recorder.events, nil)
	equal(t, "message", f.status(t).Conditions[0].Message, "unable to create pods, no labels")
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, manageReplicas
func TestSyncDeletesWhatIsTooMuch(t *testing.T) {
	set := newSet(1, steady(3))
	list := numbered(3, ownedBy(set))
	list[1].Status.Conditions[0].Status = corev1.ConditionFalse
	list[2].Annotations = map[string]string{corev1.PodDeletionCost: "-1"}
	f := newFixture(t, set, list...)
	f.mustSync(t)
	got := f.requests()
	slices.Sort(got[:2])
	equal(t, "requests", got, []string{"delete pods p001", "delete pods p002", "update replicasets/status"})
	equal(t, "events", f.recorder.events,
		[]string{"Normal SuccessfulDelete Deleted pod: p001", "Normal SuccessfulDelete Deleted pod: p002"})

	// The cache still shows all three: no other pod is deleted.
	f.setCache.watermark = "99999"
	f.mustWait(t)
	equal(t, "requests while the cache lags", f.requests(), nil)
	f.show(t)
	f.mustSync(t)
	equal(t, "pods in the end", namesOf(f.podsOnServer(t)), []string{"p000"})
}

// Each delete names the UID, so that it cannot hit a pod that took the name meanwhile.
func TestDeletesArePreconditioned(t *testing.T) {
	set := newSet(0)
	f := newFixture(t, set, newPod("p", ownedBy(set)))
	f.mustSync(t)
	for _, a := range f.server.Actions() {
		if d, ok := a.(clienttesting.DeleteActionImpl); ok {
			equal(t, "precondition", d.DeleteOptions.Preconditions, metav1.NewUIDPreconditions("p-uid"))
			return
		}
	}
	t.Error("nothing was deleted")
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, manageReplicas, and
// pkg/controller/controller_utils.go, DeletePod
func TestDeleteErrors(t *testing.T) {
	gr := schema.GroupResource{Resource: "pods"}
	tests := []struct {
		name    string
		err     error
		wantErr string
		event   string
	}{
		{"gone already", apierrors.NewNotFound(gr, "p000"), "", ""},
		{
			"replaced by a namesake",
			apierrors.NewConflict(gr, "p000",
				errors.New("Precondition failed: UID in precondition: p000-uid, UID in object meta: other")), "", "",
		},
		{
			"refused", errors.New("refused"), "unable to delete pods: refused",
			"Warning FailedDelete Error deleting: refused",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set := newSet(0)
			f := newFixture(t, set, numbered(2, ownedBy(set))...)
			f.server.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				return a.(clienttesting.DeleteAction).GetName() == "p000", nil, tt.err
			})
			_, err := f.sync(t.Context())
			if (err == nil) != (tt.wantErr == "") || (err != nil && err.Error() != tt.wantErr) {
				t.Errorf("error = %v, want %q", err, tt.wantErr)
			}
			f.setCache.watermark = "99999"
			f.podCache.remove(newPod("p001"))
			equal(t, "waits for p000 to go", f.client.Seen(set.UID) != nil, tt.wantErr == "")
			want := []string{"Normal SuccessfulDelete Deleted pod: p001"}
			if tt.event != "" {
				want = append([]string{tt.event}, want...)
				c := f.status(t).Conditions[0]
				equal(t, "condition", []string{c.Reason, c.Message}, []string{"FailedDelete", tt.wantErr})
			}
			equal(t, "events", f.recorder.events, want)
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set_utils.go, updateReplicaSetStatus
// (TestControllerUpdateStatusWithFailure and TestControllerUpdateRequeue)
func TestStatusWriteIsRetriedOnce(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "replicasets"}, "web", errors.New("modified"))
	set := newSet(1, steady(0))
	failing := func(f *fixture, times int) {
		f.server.PrependReactor("update", "replicasets", func(clienttesting.Action) (bool, runtime.Object, error) {
			times--
			return times >= 0, nil, conflict
		})
	}
	t.Run("and succeeds on a fresh copy", func(t *testing.T) {
		f := newFixture(t, set, newPod("p", ownedBy(set)))
		fresh := set.DeepCopy()
		fresh.Generation, fresh.Spec.Replicas = 2, ptr.To[int32](9)
		if err := f.server.Tracker().Update(appsv1.SchemeGroupVersion.WithResource("replicasets"), fresh,
			"ns"); err != nil {
			t.Fatal(err)
		}
		failing(f, 1)
		f.mustSync(t)
		equal(t, "requests", f.requests(),
			[]string{"update replicasets/status", "get replicasets", "update replicasets/status"})
		status := f.status(t)
		equal(t, "replicas", status.Replicas, 1)
		equal(t, "observed generation is that of the spec acted on", status.ObservedGeneration, 1)
	})
	t.Run("and not more often", func(t *testing.T) {
		f := newFixture(t, set, newPod("p", ownedBy(set)))
		failing(f, 9)
		if _, err := f.sync(t.Context()); !apierrors.IsConflict(err) {
			t.Errorf("error = %v, want the conflict", err)
		}
		equal(t, "requests", f.requests(),
			[]string{"update replicasets/status", "get replicasets", "update replicasets/status"})
		equal(t, "unseen", f.client.Stats().Unseen, 0)
	})
	t.Run("unless there is no fresh copy", func(t *testing.T) {
		f := newFixture(t, set, newPod("p", ownedBy(set)))
		failing(f, 1)
		if err := f.server.Tracker().Delete(appsv1.SchemeGroupVersion.WithResource("replicasets"), "ns",
			"web"); err != nil {
			t.Fatal(err)
		}
		if _, err := f.sync(t.Context()); !apierrors.IsNotFound(err) {
			t.Errorf("error = %v, want not found", err)
		}
	})
	t.Run("nor on another set of its name", func(t *testing.T) {
		f := newFixture(t, set, newPod("p", ownedBy(set)))
		failing(f, 1)
		other := newSet(5, func(s *appsv1.ReplicaSet) { s.UID = "other" })
		if err := f.server.Tracker().Update(appsv1.SchemeGroupVersion.WithResource("replicasets"), other,
			"ns"); err != nil {
			t.Fatal(err)
		}
		if _, err := f.sync(t.Context()); err == nil || !strings.Contains(err.Error(), "was replaced") {
			t.Errorf("error = %v", err)
		}
		equal(t, "status of the other", f.status(t), appsv1.ReplicaSetStatus{})
	})
	t.Run("and what else failed is told as well", func(t *testing.T) {
		f := newFixture(t, newSet(1))
		failing(f, 9)
		quota := errors.New("quota")
		f.refuse = func(int) error { return quota }
		if _, err := f.sync(t.Context()); err == nil || !strings.Contains(err.Error(), "quota") ||
			!strings.Contains(err.Error(), "modified") {
			t.Errorf("error = %v, want both", err)
		}
	})
}

// A failure caused by the end of this process is not reported.
func TestStopIsNoFailureOfTheSet(t *testing.T) {
	f := newFixture(t, newSet(1))
	ctx, cancel := context.WithCancel(t.Context())
	f.refuse = func(int) error { cancel(); return ctx.Err() }
	if _, err := f.sync(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	equal(t, "events", f.recorder.events, nil)
}

// An API server that does not know the field omits it from its response. It is asked once, and not by every sync.
//
// Source: KEP-3973
func TestServerThatDropsTerminatingReplicas(t *testing.T) {
	set := newSet(2, steady(2), func(s *appsv1.ReplicaSet) { s.Status.TerminatingReplicas = nil })
	f := newFixture(t, set, numbered(2, ownedBy(set))...)
	f.server.PrependReactor("update", "replicasets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		answer := a.(clienttesting.UpdateAction).GetObject().(*appsv1.ReplicaSet).DeepCopy()
		answer.Status.TerminatingReplicas = nil
		return true, answer, nil
	})
	f.mustSync(t)
	equal(t, "requests", f.requests(), []string{"update replicasets/status"})
	f.setCache.watermark = "99999"
	f.mustSync(t)
	equal(t, "requests of the next sync", f.requests(), nil)

	// A set that has the field shows that the server knows it.
	reported := newSet(2, steady(1))
	f.setCache.put(reported)
	f.mustSync(t)
	equal(t, "requests for such a set", f.requests(), []string{"update replicasets/status"})
}
