package endpoints

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Source: k8s.io/kubernetes v1.37.1 pkg/controller/endpoint/endpoints_tracker.go, which does the second half only
func TestMissingFrom(t *testing.T) {
	at := func(version string) *corev1.Endpoints {
		return &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: version}}
	}
	finalizing := at("12")
	finalizing.DeletionTimestamp = ptr.To(metav1.NewTime(t0))
	other := at("12")
	other.UID = "v"
	tests := []struct {
		name      string
		write     ownWrite
		cached    *corev1.Endpoints
		watermark string
		want      bool
	}{
		{"update not seen", ownWrite{before: "9", after: "10"}, at("9"), "9", true},
		{"update not seen, others were", ownWrite{before: "8", after: "10"}, at("8"), "9", true},
		{"update seen", ownWrite{before: "9", after: "10"}, at("10"), "10", false},
		{"update seen and overtaken", ownWrite{before: "9", after: "10"}, at("11"), "12", false},
		{"deleted since", ownWrite{before: "9", after: "10"}, nil, "12", false},
		{"create not seen", ownWrite{after: "10"}, nil, "9", true},
		{"create seen", ownWrite{after: "10"}, at("10"), "10", false},
		{"opaque versions, not seen", ownWrite{before: "a", after: "b"}, at("a"), "x", true},
		{"opaque versions, seen", ownWrite{before: "a", after: "b"}, at("b"), "x", false},
		{"opaque versions, create not seen", ownWrite{after: "b"}, nil, "x", true},
		{"opaque versions, create seen", ownWrite{after: "b"}, at("c"), "x", false},
		{"opaque versions, deleted since", ownWrite{before: "a", after: "b"}, nil, "x", false},
		{"delete not seen", ownWrite{removed: "u"}, at("12"), "12", true},
		{"delete seen", ownWrite{removed: "u"}, nil, "12", false},
		{"delete seen, made anew", ownWrite{removed: "u"}, other, "12", false},
		{"delete held back by a finalizer", ownWrite{removed: "u"}, finalizing, "12", false},
	}
	for _, tt := range tests {
		if got := tt.write.missingFrom(tt.cached, tt.watermark); got != tt.want {
			t.Errorf("%s: missing = %v", tt.name, got)
		}
	}
}

func TestOwnWrites(t *testing.T) {
	key, w := types.NamespacedName{Namespace: "ns", Name: "web"}, newOwnWrites()
	w.wrote(key, "5", "5")
	if _, found := w.await(key); found || w.awaited(key) {
		t.Fatal("a write that changed nothing is waited for")
	}
	w.wrote(key, "5", "6")
	if w.awaited(key) {
		t.Error("awaited although nobody asked")
	}
	if _, found := w.await(key); !found || !w.awaited(key) {
		t.Error("not awaited")
	}
	w.removed(key, &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{UID: "u"}})
	w.gone(key, "other")
	if write, _ := w.await(key); write.removed != "u" {
		t.Errorf("pending %+v", write)
	}
	w.gone(key, "u")
	w.wrote(key, "", "7")
	w.gone(key, "") // an object without UID settles nothing
	if len(w.pending) != 1 {
		t.Errorf("pending %v", w.pending)
	}
	w.settle(key)
	w.removed(key, nil)
	if len(w.pending) != 0 {
		t.Errorf("pending %v", w.pending)
	}
}
