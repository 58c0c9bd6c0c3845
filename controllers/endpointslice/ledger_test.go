package endpointslice

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Source: k8s.io/endpointslice v0.37.2 util/endpointslice_tracker_test.go, TestEndpointSliceTrackerStaleSlices
func TestMissingFrom(t *testing.T) {
	at := func(generation int64) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{UID: "u", Generation: generation}}
	}
	finalizing := at(2)
	finalizing.DeletionTimestamp = ptr.To(metav1.NewTime(t0))
	w, removed := lastWrite{generation: 2, version: "10"}, lastWrite{deleted: true}
	for _, tt := range []struct {
		name      string
		write     lastWrite
		cached    *discoveryv1.EndpointSlice
		watermark string
		want      bool
	}{
		{"create not seen", w, nil, "9", true},
		{"update not seen", w, at(1), "9", true},
		{"seen", w, at(2), "10", false},
		{"overtaken", w, at(3), "12", false},
		{"deleted since", w, nil, "12", false},
		{"opaque versions, create not seen", w, nil, "x", true},
		{"opaque versions, update not seen", w, at(1), "x", true},
		{"opaque versions, seen", w, at(2), "x", false},
		{"delete not seen", removed, at(2), "12", true},
		{"delete seen", removed, nil, "12", false},
		{"delete held back by a finalizer", removed, finalizing, "12", false},
	} {
		if got := tt.write.missingFrom(tt.cached, tt.watermark); got != tt.want {
			t.Errorf("%s: missing = %v", tt.name, got)
		}
	}
}

// Source: k8s.io/endpointslice v0.37.2 util/endpointslice_tracker_test.go, TestEndpointSliceTrackerShouldSync
func TestLedger(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "web"}
	at := func(uid types.UID, generation int64) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{UID: uid, Generation: generation, ResourceVersion: "10"}}
	}
	l := newLedger()
	if l.expects(key, at("u", 1)) || l.gone(key, "u") || l.awaited(key) || l.lacks(key, "1", nil) {
		t.Error("an empty ledger knows something")
	}
	l.wrote(key, at("u", 2), "8")
	if !l.expects(key, at("u", 1)) || !l.expects(key, at("u", 2)) || l.expects(key, at("u", 3)) || l.expects(key, at("v", 1)) {
		t.Error("what was written and before it is expected, nothing else")
	}
	if l.awaited(key) {
		t.Error("awaited although nobody asked")
	}
	if l.await(key); !l.lacks(key, "9", nil) || !l.awaited(key) {
		t.Error("not awaited")
	}
	if l.lacks(key, "10", nil) || l.awaited(key) {
		t.Error("awaited although it is there")
	}
	l.deleted(key, "u", "10")
	if !l.expects(key, at("u", 9)) || !l.lacks(key, "11", []*discoveryv1.EndpointSlice{at("u", 2)}) {
		t.Error("a delete is not awaited")
	}
	if !l.gone(key, "u") || l.gone(key, "u") {
		t.Error("a delete is ours once")
	}
	l.wrote(key, at("u", 2), "10")
	if l.lacks(key, "5", nil) || l.expects(key, at("u", 2)) {
		t.Error("history went back, and the write with it")
	}
	l.wrote(key, at("u", 2), "8")
	if l.forget(key); l.expects(key, at("u", 2)) {
		t.Error("forgotten is forgotten")
	}
}
