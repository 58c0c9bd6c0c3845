package deployment

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
	"github.com/flyball-dev/flyball/controllers/internal/fakeapi"
)

// scene is an applier on a client that answers every write with the object it was sent, one version on, and fails those
// that the test wants to fail.
type scene struct {
	events.Recorder // Only Eventf is called.

	t      *testing.T
	a      *applier
	sent   []string // "verb name", in order
	events []string
	fail   map[string]error // by "verb name"
	wrote  []string         // "name@version" of the answers
	server *fakeapi.Server
	client *client.Cluster
	cache  map[string]*appsv1.ReplicaSet
	// unchanged makes the server answer with the version that was sent, as it does when a write changes nothing.
	unchanged bool
	deletions []metav1.DeleteOptions
}

func newScene(t *testing.T, d *appsv1.Deployment, rss ...*appsv1.ReplicaSet) *scene {
	s := &scene{t: t, fail: map[string]error{}, cache: map[string]*appsv1.ReplicaSet{}}
	s.server = fakeapi.NewServer()
	s.server.PrependReactor("*", "*", s.answer)
	s.client = fakeapi.NewClient(s.server)
	s.a = &applier{
		client: s.client, recorder: s, observed: Observed{Deployment: d, ReplicaSets: rss, Now: epoch},
		cached: func(_, name string) (*appsv1.ReplicaSet, bool) { rs, ok := s.cache[name]; return rs, ok },
		latest: map[string]*appsv1.ReplicaSet{},
	}
	return s
}

// Eventf implements events.Recorder.
func (s *scene) Eventf(obj runtime.Object, eventType, reason, format string, args ...any) {
	if obj != runtime.Object(s.a.observed.Deployment) {
		s.t.Errorf("event about %v", obj)
	}
	s.events = append(s.events, eventType+" "+reason+" "+fmt.Sprintf(format, args...))
}

func (s *scene) answer(action clienttesting.Action) (bool, runtime.Object, error) {
	verb := action.GetVerb()
	if sub := action.GetSubresource(); sub != "" {
		verb += "/" + sub
	}
	var obj runtime.Object
	var name string
	switch a := action.(type) {
	case clienttesting.DeleteActionImpl:
		name = a.Name
		s.deletions = append(s.deletions, a.DeleteOptions)
	case clienttesting.UpdateActionImpl:
		obj = a.GetObject().DeepCopyObject()
	case clienttesting.CreateActionImpl:
		obj = a.GetObject().DeepCopyObject()
	default:
		s.t.Errorf("unexpected %T", action)
	}
	if m, ok := obj.(metav1.Object); ok {
		name = m.GetName()
		if !s.unchanged {
			m.SetResourceVersion(m.GetResourceVersion() + "+")
		}
	}
	request := verb + " " + name
	s.sent = append(s.sent, request)
	if m, ok := obj.(metav1.Object); ok && s.fail[request] == nil {
		s.wrote = append(s.wrote, name+"@"+m.GetResourceVersion())
	}
	return true, obj, s.fail[request]
}

func (s *scene) run(steps ...step) error { return s.a.run(s.t.Context(), Changes{steps: steps}) }

func (s *scene) wantSent(want ...string) {
	s.t.Helper()
	equal(s.t, "requests", s.sent, want)
}

// is reports whether err is want, or what a client makes of want when it comes over the wire.
func is(err, want error) bool {
	return errors.Is(err, want) || err != nil && want != nil && strings.Contains(err.Error(), want.Error())
}

var (
	stale   = apierrors.NewConflict(appsv1.Resource("replicasets"), "x", errors.New("the object has been modified"))
	refused = apierrors.NewForbidden(appsv1.Resource("replicasets"), "x", errors.New("exceeded quota"))
)

func status(replicas int32) updateStatus {
	return updateStatus{Status: appsv1.DeploymentStatus{Replicas: replicas}, Revision: "4"}
}

func grow(rs *appsv1.ReplicaSet, to int32) editReplicaSet {
	return editReplicaSet{
		ReplicaSet: rs, Replicas: ptr.To(to), Annotations: map[string]string{"a": "b"},
		Event: normal("Scaled", "to %d", to),
	}
}

func TestApplyInOrder(t *testing.T) {
	d := web(3)
	v1, v2 := set(d, 1, "v1", 3), set(d, 2, "v2", 3)
	s := newScene(t, d, v1, v2)
	err := s.run(announce{normal("Hello", "you")}, grow(v1, 4), grow(v1, 5), deleteReplicaSet{v2}, status(1))
	equal(t, "error", err, nil)
	s.wantSent("update web-v1", "update web-v1", "delete web-v2", "update/status web")
	equal(t, "events", s.events, []string{"Normal Hello you", "Normal Scaled to 4", "Normal Scaled to 5"})
	// The second write of a ReplicaSet builds on what the first one returned.
	equal(t, "told of", s.wrote, []string{"web-v1@1+", "web-v1@1++", "web@100+"})
	equal(t, "observed size", replicasets.Size(v1), 3)
	// Differs: kube-controller-manager deletes without preconditions.
	equal(t, "deletion", s.deletions,
		[]metav1.DeleteOptions{
			{Preconditions: &metav1.Preconditions{UID: ptr.To(v2.UID), ResourceVersion: ptr.To("2")}},
		})
}

func TestApplyWritesWhatTheStepsSay(t *testing.T) {
	d := web(3, annotate("keep", "me"))
	v1 := set(d, 1, "v1", 3)
	s := newScene(t, d, v1)
	var updated []runtime.Object
	s.server.PrependReactor("update", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		updated = append(updated, a.(clienttesting.UpdateAction).GetObject())
		return false, nil, nil
	})
	rs := editReplicaSet{
		ReplicaSet: v1, MinReadySeconds: ptr.To[int32](0), Replicas: ptr.To[int32](0),
		Annotations: map[string]string{"a": "b"},
	}
	equal(t, "error", s.run(rs, status(7)), nil)
	wantRS := v1.DeepCopy()
	wantRS.Spec.Replicas = ptr.To[int32](0)
	wantRS.Annotations["a"] = "b"
	wantD := d.DeepCopy()
	wantD.Status.Replicas = 7
	wantD.Annotations[replicasets.RevisionAnnotation] = "4"
	equal(t, "written", updated, []runtime.Object{wantRS, wantD})

	updated = nil
	s.a.deploymentWritten = false
	back := template("v1")
	equal(t, "error",
		s.run(
			rollBack{Template: &back, Annotations: map[string]string{"cause": "first"}, Event: normal("Back", "again")},
		), nil)
	wantD = d.DeepCopy()
	wantD.Spec.Template, wantD.Annotations = back, map[string]string{"cause": "first"}
	equal(t, "rolled back", updated, []runtime.Object{wantD})
	equal(t, "events", s.events, []string{"Normal Back again"})
}

// The package comment says why.
func TestOneWriteOfTheDeploymentPerSync(t *testing.T) {
	d := web(3)
	v1 := set(d, 1, "v1", 3)
	s := newScene(t, d, v1)
	equal(t, "error", s.run(status(1), grow(v1, 4), status(2), grow(v1, 5)), nil)
	s.wantSent("update/status web", "update web-v1") // it ends where the second would be
	s = newScene(t, d, v1)
	equal(t, "error", s.run(status(1), rollBack{Event: normal("Back", "again")}), nil)
	s.wantSent("update/status web")
	equal(t, "events", len(s.events), 0)
	// A write that changed nothing brings about no event that would start another sync.
	s = newScene(t, d, v1)
	s.unchanged = true
	equal(t, "error", s.run(status(1), grow(v1, 4), status(2)), nil)
	s.wantSent("update/status web", "update web-v1", "update/status web")
}

// Differs: kube-controller-manager forgets the error when an old ReplicaSet cannot be scaled, and so does not retry.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/rolling.go, reconcileOldReplicaSets
func TestStatusIsWrittenAlthoughOldCannotBeScaled(t *testing.T) {
	d := web(3)
	v0, v1 := set(d, 0, "v0", 3), set(d, 1, "v1", 3)
	s := newScene(t, d, v0, v1)
	s.fail["update web-v0"] = refused
	anyway := func(rs *appsv1.ReplicaSet) editReplicaSet {
		e := grow(rs, 1)
		e.StatusAnyway = true
		return e
	}
	err := s.run(anyway(v0), anyway(v1), status(1))
	if !apierrors.IsForbidden(err) {
		t.Errorf("error: %v", err)
	}
	s.wantSent("update web-v0", "update/status web")
	equal(t, "events", len(s.events), 0)
	// Both errors are told if the status fails too.
	s.fail["update/status web"], s.a.deferred, s.a.deploymentWritten = stale, nil, false
	if err = s.run(anyway(v0), status(1)); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), stale.Error()) {
		t.Errorf("error: %v", err)
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, rolling.go
func TestOtherFailuresEndTheSync(t *testing.T) {
	d := web(3)
	v1 := set(d, 1, "v1", 3)
	for _, tc := range []struct {
		name, request string
		failure       error
		steps         []step
		want          []string
	}{
		{"edit", "update web-v1", stale, []step{grow(v1, 1), status(1)}, []string{"update web-v1"}},
		{"delete", "delete web-v1", stale, []step{deleteReplicaSet{v1}, status(1)}, []string{"delete web-v1"}},
		{"status", "update/status web", stale, []step{status(1), grow(v1, 1)}, []string{"update/status web"}},
		{
			"roll back", "update web", stale,
			[]step{rollBack{Event: normal("Back", "again")}, status(1)},
			[]string{"update web"},
		},
		{
			"what is gone already is no failure", "delete web-v1",
			apierrors.NewNotFound(appsv1.Resource("replicasets"), "web-v1"),
			[]step{deleteReplicaSet{v1}, status(1)},
			[]string{"delete web-v1", "update/status web"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScene(t, d, v1)
			s.fail[tc.request] = tc.failure
			if err := s.run(tc.steps...); !apierrors.IsNotFound(tc.failure) && !is(err, tc.failure) {
				t.Errorf("error: %v", err)
			}
			s.wantSent(tc.want...)
			equal(t, "events", len(s.events), 0)
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/sync.go, getNewReplicaSet
func TestFailedCreate(t *testing.T) {
	d := web(3)
	newRS := set(d, 2, "v2", 3)
	create := createReplicaSet{ReplicaSet: newRS, Event: normal("Created", "it")}
	exists := apierrors.NewAlreadyExists(appsv1.Resource("replicasets"), newRS.Name)
	ending := apierrors.NewForbidden(appsv1.Resource("replicasets"), newRS.Name,
		errors.New("namespace is being terminated"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	theirs := newRS.DeepCopy()
	theirs.OwnerReferences[0].UID = "other"
	another := newRS.DeepCopy()
	another.Spec.Template = template("v9")
	for _, tc := range []struct {
		name    string
		failure error
		cached  *appsv1.ReplicaSet
		want    []string
		events  []string
		wantErr error
	}{
		{
			"refused: told in the status and by an event", refused, nil,
			[]string{"create web-v2", "update/status web"},
			[]string{`Warning ReplicaSetCreateError Failed to create new replica set "web-v2": ` + refused.Error()},
			refused,
		},
		{"the namespace is going: nothing is told", ending, nil, []string{"create web-v2"}, nil, ending},
		{"taken, by what the cache does not show", exists, nil, []string{"create web-v2"}, nil, exists},
		{
			"taken by a stranger: counted as a collision", exists, theirs,
			[]string{"create web-v2", "update/status web"},
			nil, exists,
		},
		{
			"taken by our own for another template: counted, too", exists, another,
			[]string{"create web-v2", "update/status web"},
			nil, exists,
		},
		{"taken by itself: planned again", exists, newRS, []string{"create web-v2"}, nil, errReplan},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScene(t, d)
			s.fail["create web-v2"] = tc.failure
			if tc.cached != nil {
				s.cache[newRS.Name] = tc.cached
			}
			if err := s.run(create, status(1)); !is(err, tc.wantErr) {
				t.Errorf("error %v, want %v", err, tc.wantErr)
			}
			s.wantSent(tc.want...)
			equal(t, "events", s.events, tc.events)
			equal(t, "found", slices.Contains(s.a.observed.ReplicaSets, newRS), tc.wantErr == errReplan)
		})
	}
	t.Run("created", func(t *testing.T) {
		s := newScene(t, d)
		equal(t, "error", s.run(create), nil)
		equal(t, "events", s.events, []string{"Normal Created it"})
		equal(t, "told of", s.wrote, []string{"web-v2@2+"})
	})
	t.Run("refused when the status was written already: the event alone", func(t *testing.T) {
		s := newScene(t, d)
		s.fail["create web-v2"] = refused
		if err := s.run(status(1), create); !apierrors.IsForbidden(err) {
			t.Errorf("error: %v", err)
		}
		s.wantSent("update/status web", "create web-v2")
		equal(t, "events", len(s.events), 1)
	})
}
