package replicaset

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// at is a cache of ReplicaSets that has come to this resource version.
type at string

func (w at) ResourceVersion() string { return string(w) }

// Source: k8s.io/kubernetes v1.37.1 pkg/controller/util/consistency/consistency.go, EnsureReady and WroteAt
func TestRecordStale(t *testing.T) {
	tests := []struct {
		name       string
		write      func(r *record)
		pods, sets at
		want       string // the resource whose cache lags; "" for none
	}{
		{"nothing written", func(*record) {}, "5", "5", ""},
		{"pod not seen yet", func(r *record) { r.wrotePod("10", at("5")) }, "9", "99", "pods"},
		{"pod seen", func(r *record) { r.wrotePod("10", at("5")) }, "10", "5", ""},
		{"set not seen yet", func(r *record) { r.wroteSet("10", at("5")) }, "99", "9", "replicasets"},
		{"set seen", func(r *record) { r.wroteSet("10", at("5")) }, "5", "11", ""},
		{"versions compare as numbers", func(r *record) { r.wrotePod("10", at("5")) }, "9", "9", "pods"},
		{"the newest write counts", func(r *record) { r.wrotePod("10", at("5")); r.wrotePod("12", at("5")); r.wrotePod("11", at("5")) }, "11", "5", "pods"},
		{"versions that do not compare hold nothing up", func(r *record) { r.wrotePod("abc", at("5")) }, "9", "5", ""},
		{"nor do watermarks that do not", func(r *record) { r.wrotePod("10", at("5")) }, "abc", "5", ""},
		{"a cache without a watermark", func(r *record) { r.wrotePod("10", at("")) }, "", "", ""},
		{"an answer without a version", func(r *record) { r.wrotePod("", at("5")) }, "5", "5", ""},
		{"a comparable write after one that is not", func(r *record) { r.wrotePod("abc", at("5")); r.wrotePod("10", at("5")) }, "9", "5", "pods"},
		{"the server's history went back", func(r *record) { r.wrotePod("10", at("9")) }, "3", "5", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &record{}
			tt.write(r)
			resource, wrote, read, stale := r.stale(tt.pods, tt.sets)
			if resource != tt.want || stale != (tt.want != "") {
				t.Errorf("stale: %v (%s: wrote %s, read %s), want %q", stale, resource, wrote, read, tt.want)
			}
		})
	}
}

// podsAt is a pod cache at a watermark.
func podsAt(watermark string, list ...*corev1.Pod) *cache[*corev1.Pod] {
	c := newCache(list...)
	c.watermark = watermark
	return c
}

// Rows with versions "a" and "b" are those of a server whose versions do not compare: there each pod has to be seen.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/controller_utils.go, ControllerExpectations and
// UIDTrackingControllerExpectations
func TestRecordSettled(t *testing.T) {
	inVersion := func(rv string) podOption { return func(p *corev1.Pod) { p.ResourceVersion = rv } }
	one, two := newPod("one", inVersion("a")), newPod("two", inVersion("b"))
	namesake := newPod("one", uid("another"))
	type list = []*corev1.Pod
	tests := []struct {
		name             string
		created, deleted list
		cache            *cache[*corev1.Pod]
		after            time.Duration
		want             bool
	}{
		{"nothing written", nil, nil, podsAt("x"), 0, true},
		{"created, not seen", list{one, two}, nil, podsAt("x", one), 0, false},
		{"created, all seen", list{one, two}, nil, podsAt("x", one, two), 0, true},
		{"created, another pod of the name is there", list{one}, nil, podsAt("x", namesake), 0, false},
		{"created, seen when on its way out already", list{one}, nil, podsAt("x", newPod("one", deleting)), 0, true},
		{"created, come and gone: the version tells", list{newPod("one", inVersion("10"))}, nil, podsAt("10"), 0, true},
		{"created, the version is not reached", list{newPod("one", inVersion("10"))}, nil, podsAt("9"), 0, false},
		{"deleted, still there", nil, list{one, two}, podsAt("x", one), 0, false},
		{"deleted, on their way out or gone", nil, list{one, two}, podsAt("x", newPod("one", deleting)), 0, true},
		{"deleted, another pod has the name", nil, list{one}, podsAt("x", namesake), 0, true},
		{"after five minutes still waiting", nil, list{one}, podsAt("x", one), trustAfter, false},
		{"after more than that the cache is believed", nil, list{one}, podsAt("x", one), trustAfter + 1, true},
		{"created, lost: the same", list{one}, nil, podsAt("x"), trustAfter + 1, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &record{}
			if tt.created != nil {
				r.createdPods(tt.created, at("1"), epoch)
			}
			if tt.deleted != nil {
				r.deletedPods(tt.deleted, epoch)
			}
			if got := r.settled("ns", tt.cache, epoch.Add(tt.after)); got != tt.want {
				t.Errorf("settled = %v, want %v", got, tt.want)
			}
		})
	}
}

// What has been seen once need not be seen again: a pod that was created, seen and deleted by somebody does not unsettle.
func TestRecordSettledRemembersWhatWasSeen(t *testing.T) {
	one, two := newPod("one"), newPod("two")
	one.ResourceVersion, two.ResourceVersion = "a", "b"
	r := &record{}
	r.createdPods([]*corev1.Pod{one, two}, at("x"), epoch)
	if r.settled("ns", podsAt("x", one), epoch) {
		t.Error("settled although two was not seen")
	}
	if !r.settled("ns", podsAt("x", two), epoch) {
		t.Error("not settled although both have been seen")
	}
}

func TestRecordRefusedWaits(t *testing.T) {
	r := &record{}
	r.refusedPods(epoch)
	if r.settled("ns", podsAt("99"), epoch.Add(trustAfter)) {
		t.Error("settled: the next sync would be refused again")
	}
	if !r.settled("ns", podsAt("99"), epoch.Add(trustAfter+1)) {
		t.Error("never settled")
	}
}

// Source: k8s.io/kubernetes v1.37.1 pkg/controller/replicaset/replica_set.go, updateRS and deleteRS (TestExpectationsOnRecreate)
func TestLedgerKeepsSetsOfOneNameApart(t *testing.T) {
	l := newLedger()
	old, recreated := newSet(1), newSet(1)
	recreated.UID = "other"
	l.open(old).wrotePod("10", at("1"))
	if l.find(recreated) != nil {
		t.Error("the record of the old set is found for the new one")
	}
	if l.find(old) == nil || l.open(old).pods.wrote != "10" {
		t.Error("the record of the old set is lost")
	}
	if r := l.open(recreated); r.pods.wrote != "" || l.find(old) != nil {
		t.Error("the new set's record is not its own")
	}
	l.forget(keyOf(recreated))
	l.forget(types.NamespacedName{Namespace: "ns", Name: "none"})
	if l.find(recreated) != nil || l.size() != 0 {
		t.Error("a record is left")
	}
}
