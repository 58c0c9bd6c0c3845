package rollout

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, ResolveFenceposts
func TestResolveFenceposts(t *testing.T) {
	for _, tc := range []struct {
		surge, unavailable string
		replicas           int32
		wantS, wantU       int32
	}{
		{"0%", "1%", 2, 0, 1}, // would be 0 and 0
		{"0%", "1%", 1, 0, 1},
		{"1%", "25%", 2, 1, 0},
		{"1%", "25%", 1, 1, 0},
		{"1%", "0%", 2, 1, 0},
		{"25%", "25%", 10, 3, 2}, // up and down
		{"25%", "25%", 4, 1, 1},
		{"25%", "25%", 0, 0, 1},
		{"3", "2", 10, 3, 2},
		{"0", "0", 10, 0, 1},
		{"200%", "100%", 5, 10, 5},
	} {
		s, u, err := resolve(ptr.To(intstr.Parse(tc.surge)), ptr.To(intstr.Parse(tc.unavailable)),
			tc.replicas)
		if err != nil || s != tc.wantS || u != tc.wantU {
			t.Errorf("%s and %s of %d = %d, %d, %v; want %d, %d", tc.surge, tc.unavailable, tc.replicas, s, u, err,
				tc.wantS, tc.wantU)
		}
	}
	if s, u, err := resolve(nil, nil, 3); s != 0 || u != 1 || err != nil {
		t.Errorf("nothing given: %d, %d, %v", s, u, err)
	}
	for _, bad := range []string{"many", "5x%", "%"} {
		if _, _, err := resolve(ptr.To(intstr.FromString(bad)), nil, 3); err == nil {
			t.Errorf("maxSurge %q passed", bad)
		}
		if _, _, err := resolve(nil, ptr.To(intstr.FromString(bad)), 3); err == nil {
			t.Errorf("maxUnavailable %q passed", bad)
		}
	}
}

type change func(*appsv1.Deployment)

// web is a Deployment of this size that is rolled out with maxSurge and maxUnavailable 25 %.
func web(replicas int32, changes ...change) *appsv1.Deployment {
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: ptr.To(replicas)}}
	rolling("25%", "25%")(d)
	for _, c := range changes {
		c(d)
	}
	return d
}

func rolling(surge, unavailable string) change {
	return func(d *appsv1.Deployment) {
		d.Spec.Strategy = appsv1.DeploymentStrategy{
			Type: appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxSurge: ptr.To(intstr.Parse(surge)), MaxUnavailable: ptr.To(intstr.Parse(unavailable)),
			},
		}
	}
}

func recreate(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType }

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, MaxUnavailable and MaxSurge
func TestLimits(t *testing.T) {
	for _, tc := range []struct {
		name string
		d    *appsv1.Deployment
		want Limits
	}{
		{"rolling", web(10), Limits{10, 3, 2}},
		{"more unavailable than there are", web(3, rolling("0", "10")), Limits{3, 0, 3}},
		{"no pods, none unavailable, surge as given", web(0, rolling("2", "10")), Limits{0, 2, 0}},
		{"recreate has none of both", web(10, recreate), Limits{10, 0, 0}},
		{
			"rolling without parameters", web(10, func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate = nil }),
			Limits{10, 0, 1},
		},
		{"no size is one", web(0, func(d *appsv1.Deployment) { d.Spec.Replicas = nil }), Limits{1, 1, 0}},
	} {
		got, err := LimitsOf(tc.d)
		if err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v; want %+v", tc.name, got, err, tc.want)
		}
	}
	if _, err := LimitsOf(web(1, rolling("x%", "0"))); err == nil {
		t.Error("a percentage that is none passed")
	}
	if l := (Limits{10, 3, 2}); l.MaxReplicas() != 13 || l.MinAvailable() != 8 {
		t.Errorf("at most %d, at least %d", l.MaxReplicas(), l.MinAvailable())
	}
}
