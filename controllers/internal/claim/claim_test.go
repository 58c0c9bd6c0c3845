package claim

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	replicaSet = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
	podsGR     = schema.GroupResource{Resource: "pods"}
)

// owner is the metadata of the ReplicaSet ns/web.
func owner() *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "owner-uid"}
}

func deletingOwner() *metav1.ObjectMeta {
	o := owner()
	o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return o
}

type option func(*corev1.Pod)

// pod returns ns/p1, which the selector app=web matches and nobody owns, changed by options.
func pod(options ...option) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "p1", UID: "pod-uid", Labels: map[string]string{"app": "web"},
	}}
	for _, o := range options {
		o(p)
	}
	return p
}

func named(name string) option {
	return func(p *corev1.Pod) { p.Name = name }
}

func ownedBy(uid types.UID) option {
	return func(p *corev1.Pod) {
		o := owner()
		o.UID = uid
		p.OwnerReferences = append(p.OwnerReferences, *metav1.NewControllerRef(o, replicaSet))
	}
}

func labelled(app string) option {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": app} }
}

func deleting(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

const (
	adoptWeb = `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web",` +
		`"uid":"owner-uid","controller":true,"blockOwnerDeletion":true}],"uid":"pod-uid"}}`
	releaseWeb = `{"metadata":{"uid":"pod-uid","ownerReferences":[{"$patch":"delete","uid":"owner-uid"}]}}`
)

// recorder answers a Claimer's patches and counts CanAdopt calls.
type recorder struct {
	patches  []string // "name patch"
	patchErr map[string]error
	asked    int
	adoptErr error
}

func (r *recorder) claimer(o metav1.Object) *Claimer[*corev1.Pod] {
	return &Claimer[*corev1.Pod]{
		Owner: o, Kind: replicaSet, Selector: labels.SelectorFromSet(labels.Set{"app": "web"}),
		CanAdopt: func(context.Context) error { r.asked++; return r.adoptErr },
		Patch: func(_ context.Context, p *corev1.Pod, patch []byte) (*corev1.Pod, error) {
			r.patches = append(r.patches, p.Name+" "+string(patch))
			return p, r.patchErr[p.Name]
		},
	}
}

func names(pods []*corev1.Pod) (out []string) {
	for _, p := range pods {
		out = append(out, p.Name)
	}
	return out
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_ref_manager.go, ClaimObject
func TestClaimDecidesPerObject(t *testing.T) {
	otherRef := func(p *corev1.Pod) { // an owner, but not the controller
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "c"}}
	}
	tests := []struct {
		name    string
		owner   *metav1.ObjectMeta
		pod     *corev1.Pod
		claimed bool
		patch   string
	}{
		{"orphan that matches is adopted", owner(), pod(), true, adoptWeb},
		{"an owner reference that is no controller leaves it an orphan", owner(), pod(otherRef), true, adoptWeb},
		{"orphan that does not match is left alone", owner(), pod(labelled("db")), false, ""},
		{"orphan without labels is left alone", owner(), pod(func(p *corev1.Pod) { p.Labels = nil }), false, ""},
		{"orphan that is being deleted is left alone", owner(), pod(deleting), false, ""},
		{
			"orphan in another namespace is left alone", owner(), pod(func(p *corev1.Pod) { p.Namespace = "other" }),
			false, "",
		},
		{"deleting owner adopts nothing", deletingOwner(), pod(), false, ""},
		{"owned and matching is kept without a write", owner(), pod(ownedBy("owner-uid")), true, ""},
		{"owned, matching and being deleted is kept", owner(), pod(ownedBy("owner-uid"), deleting), true, ""},
		{"deleting owner keeps what matches", deletingOwner(), pod(ownedBy("owner-uid")), true, ""},
		{"owned without a match is released", owner(), pod(ownedBy("owner-uid"), labelled("db")), false, releaseWeb},
		{
			"owned without a match is released even when being deleted", owner(),
			pod(ownedBy("owner-uid"), labelled("db"), deleting), false, releaseWeb,
		},
		{"deleting owner releases nothing", deletingOwner(), pod(ownedBy("owner-uid"), labelled("db")), false, ""},
		{"somebody else's is left alone", owner(), pod(ownedBy("other-uid")), false, ""},
		{
			"an earlier owner of the same name is somebody else",
			owner(), pod(ownedBy("old-uid"), labelled("db")), false, "",
		},
		{
			"cluster-scoped owner adopts in any namespace", &metav1.ObjectMeta{Name: "web", UID: "owner-uid"}, pod(),
			true, adoptWeb,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r recorder
			got, err := r.claimer(tt.owner).Claim(t.Context(), []*corev1.Pod{tt.pod})
			if err != nil {
				t.Fatal(err)
			}
			if claimed := len(got) == 1; claimed != tt.claimed {
				t.Errorf("claimed = %v, want %v", claimed, tt.claimed)
			}
			var want []string
			if tt.patch != "" {
				want = []string{"p1 " + tt.patch}
			}
			if diff := cmp.Diff(want, r.patches); diff != "" {
				t.Errorf("patches (-want +got):\n%s", diff)
			}
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_ref_manager.go, ClaimPods and ReleasePod
func TestClaimPatchErrors(t *testing.T) {
	notFound := apierrors.NewNotFound(podsGR, "p1")
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p1", nil)
	conflict := apierrors.NewConflict(podsGR, "p1", errors.New("uid"))
	adopted, released := pod(), pod(ownedBy("owner-uid"), labelled("db"))
	tests := []struct {
		name    string
		pod     *corev1.Pod
		err     error
		wantErr bool
	}{
		{"adopting what has gone is no error", adopted, notFound, false},
		{"adopting: invalid is an error", adopted, invalid, true},
		{"adopting: conflict is an error", adopted, conflict, true},
		{"releasing what has gone is no error", released, notFound, false},
		{"releasing: invalid is no error", released, invalid, false},
		{"releasing: conflict is an error", released, conflict, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := recorder{patchErr: map[string]error{"p1": tt.err}}
			got, err := r.claimer(owner()).Claim(t.Context(), []*corev1.Pod{tt.pod})
			if (err != nil) != tt.wantErr || (tt.wantErr && !errors.Is(err, tt.err)) {
				t.Errorf("error = %v, want error %v", err, tt.wantErr)
			}
			if len(got) != 0 {
				t.Errorf("claimed %v, want nothing", names(got))
			}
		})
	}
}

func TestClaimGoesOnAfterAnError(t *testing.T) {
	boom := errors.New("boom")
	r := recorder{patchErr: map[string]error{"p2": boom, "p4": boom}}
	got, err := r.claimer(owner()).Claim(t.Context(), []*corev1.Pod{
		pod(named("p1"), ownedBy("owner-uid")),
		pod(named("p2")),
		pod(named("p3")),
		pod(named("p4"), ownedBy("owner-uid"), labelled("db")),
		pod(named("p5"), ownedBy("owner-uid")),
	})
	if diff := cmp.Diff([]string{"p1", "p3", "p5"}, names(got)); diff != "" {
		t.Errorf("claimed (-want +got):\n%s", diff)
	}
	if !errors.Is(err, boom) || strings.Count(err.Error(), "boom") != 2 {
		t.Errorf("error = %v, want both failures", err)
	}
	if r.asked != 1 {
		t.Errorf("CanAdopt asked %d times, want once", r.asked)
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_ref_manager.go, CanAdopt
func TestCanAdoptIsAskedOnceAndOnlyWhenNeeded(t *testing.T) {
	t.Run("not at all without an adoption", func(t *testing.T) {
		r := recorder{adoptErr: errors.New("must not matter")}
		got, err := r.claimer(owner()).Claim(t.Context(), []*corev1.Pod{
			pod(named("p1"), ownedBy("owner-uid")), pod(named("p2"), ownedBy("owner-uid"), labelled("db")),
		})
		if err != nil || len(got) != 1 || r.asked != 0 {
			t.Errorf("got %v, %v, asked %d times; want p1, no error, never asked", names(got), err, r.asked)
		}
	})
	t.Run("a refusal holds for every adoption, and releases go on", func(t *testing.T) {
		// "Not found" is about the owner here, so it must not pass for a pod that vanished.
		r := recorder{adoptErr: apierrors.NewNotFound(schema.GroupResource{Resource: "replicasets"}, "web")}
		got, err := r.claimer(owner()).Claim(t.Context(), []*corev1.Pod{
			pod(named("p1")), pod(named("p2")), pod(named("p3"), ownedBy("owner-uid"), labelled("db")),
		})
		if err == nil || strings.Count(err.Error(), "not found") != 2 {
			t.Errorf("error = %v, want two refusals", err)
		}
		if len(got) != 0 || r.asked != 1 || len(r.patches) != 1 {
			t.Errorf("claimed %v, asked %d times, patches %q; want none, once, one release", names(got), r.asked,
				r.patches)
		}
	})
	t.Run("asked anew by the next Claim", func(t *testing.T) {
		var r recorder
		c := r.claimer(owner())
		for range 2 {
			if _, err := c.Claim(t.Context(), []*corev1.Pod{pod()}); err != nil {
				t.Fatal(err)
			}
		}
		if r.asked != 2 {
			t.Errorf("asked %d times, want 2", r.asked)
		}
	})
	t.Run("nil allows", func(t *testing.T) {
		var r recorder
		c := r.claimer(owner())
		c.CanAdopt = nil
		if got, err := c.Claim(t.Context(), []*corev1.Pod{pod()}); err != nil || len(got) != 1 {
			t.Errorf("got %v, %v; want p1", names(got), err)
		}
	})
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_ref_manager.go, RecheckDeletionTimestamp, and
// pkg/controller/replicaset/replica_set.go, claimPods
func TestLiveCheck(t *testing.T) {
	replaced := owner()
	replaced.UID = "another"
	boom := errors.New("boom")
	tests := []struct {
		name  string
		fresh *metav1.ObjectMeta
		err   error
		want  string // part of the error
	}{
		{"as it was", owner(), nil, ""},
		{"being deleted", deletingOwner(), nil, "is being deleted"},
		{"replaced", replaced, nil, "is gone: got uid another, want owner-uid"},
		{"unreadable", nil, boom, "boom"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			check := LiveCheck(owner(), func(context.Context) (metav1.Object, error) { return tt.fresh, tt.err })
			err := check(t.Context())
			if tt.want == "" {
				if err != nil {
					t.Errorf("error = %v, want none", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one about %q", err, tt.want)
			}
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, AddPodControllerIndexer
func TestIndexByController(t *testing.T) {
	notControlling := pod(ownedBy("owner-uid"))
	notControlling.OwnerReferences[0].Controller = nil
	for want, p := range map[string]*corev1.Pod{
		"owner-uid":  pod(ownedBy("owner-uid")),
		"orphans/ns": notControlling,
	} {
		if got, err := IndexByController(p); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%v, %v, want %s", got, err, want)
		}
	}
}
