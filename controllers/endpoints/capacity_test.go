package endpoints

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// sized returns a subset with that many addresses of each state. Its number distinguishes its port and addresses from
// those of other subsets.
func sized(number, ready, notReady int) corev1.EndpointSubset {
	s := corev1.EndpointSubset{Ports: []corev1.EndpointPort{tcp("p", int32(number+1))}}
	for i := range ready {
		s.Addresses = append(s.Addresses, corev1.EndpointAddress{IP: fmt.Sprintf("r-%d-%d", number, i)})
	}
	for i := range notReady {
		s.NotReadyAddresses = append(s.NotReadyAddresses, corev1.EndpointAddress{IP: fmt.Sprintf("n-%d-%d", number, i)})
	}
	return s
}

type size struct{ ready, notReady int }

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller_test.go, TestTruncateEndpoints
func TestTruncate(t *testing.T) {
	tests := []struct {
		name      string
		have      []size
		want      []size
		truncated bool
	}{
		{"below", []size{{500, 499}}, []size{{500, 499}}, false},
		{"exactly", []size{{500, 500}}, []size{{500, 500}}, false},
		{"ready over", []size{{1001, 0}}, []size{{1000, 0}}, true},
		{"ready over, two subsets", []size{{600, 0}, {600, 0}}, []size{{500, 0}, {500, 0}}, true},
		{
			"ready over, rounded up, the last gets less",
			[]size{{501, 0}, {502, 0}, {503, 0}},
			[]size{{333, 0}, {334, 0}, {333, 0}},
			true,
		},
		{"ready over, not ready dropped", []size{{1001, 500}}, []size{{1000, 0}}, true},
		{"ready over, a subset of not ready vanishes", []size{{1001, 0}, {0, 5}}, []size{{1000, 0}}, true},
		{"not ready over", []size{{500, 501}}, []size{{500, 500}}, true},
		{"not ready over, none ready", []size{{0, 1200}}, []size{{0, 1000}}, true},
		{"not ready shared", []size{{300, 600}, {300, 300}}, []size{{300, 267}, {300, 133}}, true},
		{"ready fill it up", []size{{1000, 3}}, []size{{1000, 0}}, true},
		{"ready fill it up, a subset of not ready vanishes", []size{{1000, 0}, {0, 3}}, []size{{1000, 0}}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var in, want []corev1.EndpointSubset
			for i, s := range tt.have {
				in = append(in, sized(i, s.ready, s.notReady))
			}
			before := (&corev1.Endpoints{Subsets: in}).DeepCopy().Subsets
			for i, s := range tt.want {
				want = append(want, sized(i, s.ready, s.notReady)) // the head of each list
			}
			got, truncated := truncate(in)
			if truncated != tt.truncated || !equalSubsets(want, got) {
				t.Errorf("truncated %v: %s", truncated, cmp.Diff(want, got))
			}
			if diff := cmp.Diff(before, in); diff != "" {
				t.Errorf("the argument was changed: %s", diff)
			}
		})
	}
}

// Truncated Endpoints are left alone until something changes. They become complete again when all addresses fit.
func TestPlanOfTruncated(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 1200 {
		pods = append(pods, pod(i))
	}
	first := plan(observed{service: service(), pods: pods})
	if ready, notReady := count(first.endpoints.Subsets); ready != 1000 || notReady != 0 {
		t.Fatalf("%d ready, %d not ready", ready, notReady)
	}
	if got := first.endpoints.Annotations[corev1.EndpointsOverCapacity]; got != "truncated" {
		t.Fatalf("annotation %q", got)
	}
	if again := plan(observed{service: service(), pods: pods, current: first.endpoints}); again.verb != leave {
		t.Errorf("again: verb %v", again.verb)
	}
	fewer := plan(observed{service: service(), pods: pods[:900], current: first.endpoints})
	if ready, _ := count(fewer.endpoints.Subsets); fewer.verb != update || ready != 900 {
		t.Errorf("900 pods: verb %v, %d ready", fewer.verb, ready)
	}
	if value, found := fewer.endpoints.Annotations[corev1.EndpointsOverCapacity]; found {
		t.Errorf("900 pods: annotation %q", value)
	}
}
