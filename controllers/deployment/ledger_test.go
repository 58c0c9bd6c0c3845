package deployment

import (
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
)

// cacheAt is a cache that holds these objects and has come to this version. What it is not asked for it does not have.
type cacheAt[T informer.Object] struct {
	informer.Informer[T]
	version string
	objects []T
}

func (c cacheAt[T]) ResourceVersion() string { return c.version }

func (c cacheAt[T]) Get(namespace, name string) (obj T, ok bool) {
	for _, o := range c.objects {
		if o.GetNamespace() == namespace && o.GetName() == name {
			return o, true
		}
	}
	return obj, false
}

func at[T metav1.Object](obj T, version string) T {
	obj.SetResourceVersion(version)
	return obj
}

func TestLedger(t *testing.T) {
	d := web(3)
	v1 := func(version string) *appsv1.ReplicaSet { return at(set(d, 1, "v1", 3), version) }
	for _, tc := range []struct {
		name string
		// what was written last
		wroteD, wroteRS string
		// what the caches show: the Deployment's version, the ReplicaSet's ("" is none), and how far they have come
		seenD, seenRS, watermark string
		want                     bool
	}{
		{"nothing written", "", "", "10", "10", "10", false},
		{"the deployment not seen", "12", "", "10", "10", "11", true},
		{"the deployment seen", "12", "", "12", "10", "12", false},
		{"the deployment seen, by a cache whose watermark is that of a slower namespace", "12", "", "12", "10", "9", false},
		{"a later state seen", "12", "", "15", "10", "15", false},
		{"the replica set not seen", "", "12", "10", "10", "11", true},
		{"the replica set seen", "", "12", "10", "12", "12", false},
		{"a created one not seen", "", "12", "10", "", "11", true},
		{"a created one that is gone again", "", "12", "10", "", "13", false},
		{"versions that do not compare", "abc", "def", "10", "10", "11", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLedger()
			if tc.wroteD != "" {
				l.record(d, at(d.DeepCopy(), tc.wroteD))
			}
			if tc.wroteRS != "" {
				l.record(d, v1(tc.wroteRS))
			}
			seen := at(d.DeepCopy(), tc.seenD)
			deployments := cacheAt[*appsv1.Deployment]{version: tc.watermark}
			sets := cacheAt[*appsv1.ReplicaSet]{version: tc.watermark}
			if tc.seenRS != "" {
				sets.objects = append(sets.objects, v1(tc.seenRS))
			}
			equal(t, "stale", l.stale(seen, deployments, sets), tc.want)
			equal(t, "pages", len(l.pages) > 0, tc.want)
		})
	}
}

func TestLedgerForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := web(3)
		deployments, sets := cacheAt[*appsv1.Deployment]{version: "10"}, cacheAt[*appsv1.ReplicaSet]{version: "10"}
		l := newLedger()
		l.record(d, at(d.DeepCopy(), "999"))
		other := at(d.DeepCopy(), "10")
		other.UID = "another of that name"
		equal(t, "stale for another of its name", l.stale(other, deployments, sets), false)

		l.record(d, at(d.DeepCopy(), "999"))
		seen := at(d.DeepCopy(), "10")
		time.Sleep(trustAfter - time.Second)
		equal(t, "stale within its time", l.stale(seen, deployments, sets), true)
		time.Sleep(time.Second)
		equal(t, "stale after that", l.stale(seen, deployments, sets), false)

		l.record(d, at(d.DeepCopy(), "999"))
		l.forget(types.NamespacedName{Namespace: "default", Name: "web"})
		equal(t, "stale when forgotten", l.stale(seen, deployments, sets), false)
	})
}
