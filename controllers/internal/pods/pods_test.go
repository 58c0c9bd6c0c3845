package pods

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, IsPodActive and IsPodTerminating
func TestLifecycle(t *testing.T) {
	tests := []struct {
		phase                         corev1.PodPhase
		deleting                      bool
		active, terminating, terminal bool
	}{
		{"", false, true, false, false},
		{corev1.PodPending, false, true, false, false},
		{corev1.PodRunning, false, true, false, false},
		{corev1.PodUnknown, false, true, false, false},
		{corev1.PodSucceeded, false, false, false, true},
		{corev1.PodFailed, false, false, false, true},
		{corev1.PodPending, true, false, true, false},
		{corev1.PodRunning, true, false, true, false},
		{corev1.PodUnknown, true, false, true, false},
		{corev1.PodSucceeded, true, false, false, true},
		{corev1.PodFailed, true, false, false, true},
	}
	for _, tt := range tests {
		p := &corev1.Pod{Status: corev1.PodStatus{Phase: tt.phase}}
		if tt.deleting {
			p.DeletionTimestamp = &metav1.Time{Time: epoch}
		}
		if got := Active(p); got != tt.active {
			t.Errorf("%q deleting=%v: Active = %v", tt.phase, tt.deleting, got)
		}
		if got := Terminating(p); got != tt.terminating {
			t.Errorf("%q deleting=%v: Terminating = %v", tt.phase, tt.deleting, got)
		}
		if got := Terminal(p); got != tt.terminal {
			t.Errorf("%q deleting=%v: Terminal = %v", tt.phase, tt.deleting, got)
		}
	}
}

// readySince returns a pod that has been ready since t, with an unrelated condition before it.
func readySince(t time.Time) *corev1.Pod {
	return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
		{Type: corev1.ContainersReady, Status: corev1.ConditionFalse},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: t}},
	}}}
}

func notReady(status corev1.ConditionStatus) *corev1.Pod {
	p := readySince(epoch)
	p.Status.Conditions[1].Status = status
	return p
}

func TestReady(t *testing.T) {
	if !Ready(readySince(epoch)) {
		t.Error("condition True: not ready")
	}
	for _, status := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown} {
		if Ready(notReady(status)) {
			t.Errorf("condition %s: ready", status)
		}
	}
	if Ready(&corev1.Pod{}) {
		t.Error("no condition: ready")
	}
	p := readySince(epoch)
	if c := ReadyCondition(p); c != &p.Status.Conditions[1] {
		t.Errorf("ReadyCondition = %v, want the pod's own", c)
	}
	if c := ReadyCondition(&corev1.Pod{}); c != nil {
		t.Errorf("ReadyCondition = %v, want nil", c)
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/api/v1/pod/util.go, IsPodAvailable
func TestAvailable(t *testing.T) {
	tests := []struct {
		name     string
		pod      *corev1.Pod
		minReady int32
		after    time.Duration // of epoch
		want     bool
	}{
		{"not ready", notReady(corev1.ConditionFalse), 0, time.Hour, false},
		{"nothing to wait for", readySince(epoch), 0, 0, true},
		{"nothing to wait for, ready in the future", readySince(epoch), 0, -time.Hour, true},
		{"nothing to wait for, time unknown", readySince(time.Time{}), 0, 0, true},
		{"too early", readySince(epoch), 10, 10*time.Second - 1, false},
		{"at the last moment", readySince(epoch), 10, 10 * time.Second, true},
		{"later", readySince(epoch), 10, time.Hour, true},
		{"time unknown", readySince(time.Time{}), 10, time.Hour, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			now := epoch.Add(tt.after)
			if got := Available(tt.pod, tt.minReady, now); got != tt.want {
				t.Errorf("Available = %v, want %v", got, tt.want)
			}
			// The two functions agree: the pod is available from that instant on, and not before.
			if at, ok := AvailableAt(tt.pod, tt.minReady); ok && tt.want == now.Before(at) {
				t.Errorf("AvailableAt = %v, Available at %v = %v", at, now, tt.want)
			}
		})
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, nextPodAvailabilityCheck
func TestAvailableAt(t *testing.T) {
	if at, ok := AvailableAt(readySince(epoch), 10); !ok || !at.Equal(epoch.Add(10*time.Second)) {
		t.Errorf("got %v, %v", at, ok)
	}
	for name, p := range map[string]*corev1.Pod{
		"not ready":    notReady(corev1.ConditionFalse),
		"time unknown": readySince(time.Time{}), "no condition": {},
	} {
		if at, ok := AvailableAt(p, 10); ok {
			t.Errorf("%s: got %v, want none", name, at)
		}
	}
	for _, minReady := range []int32{0, -1} {
		if at, ok := AvailableAt(readySince(epoch), minReady); ok {
			t.Errorf("minReadySeconds %d: got %v, want none", minReady, at)
		}
	}
}

func TestKey(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	if got := Key(pod); got != "ns/p" {
		t.Errorf("Key = %q", got)
	}
}
