package chapter11

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers/deployment"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// set returns a ReplicaSet of a version of the Deployment, as the controller would have left it.
func set(d *appsv1.Deployment, image string, age time.Duration, size, available int32) *appsv1.ReplicaSet {
	version := d.DeepCopy()
	version.Spec.Template.Spec.Containers[0].Image = image
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: strings.ReplaceAll(image, ":", "-"), UID: types.UID(image), Generation: 1,
			CreationTimestamp: metav1.NewTime(now.Add(-age)),
			Annotations:       map[string]string{"deployment.kubernetes.io/revision": image[len(image)-1:]},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(size), Template: version.Spec.Template},
		Status: appsv1.ReplicaSetStatus{
			Replicas: size, ReadyReplicas: available, AvailableReplicas: available, ObservedGeneration: 1,
		},
	}
}

func planOf(t *testing.T, d *appsv1.Deployment, sets ...*appsv1.ReplicaSet) string {
	t.Helper()
	p, err := deployment.Plan(deployment.Observed{Deployment: d, ReplicaSets: sets, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return p.String()
}

// tail is what the chapter does not show of a step.
var tail = regexp.MustCompile(`(?m) (\[|desired|max|revision|generation).*$`)

// TestChapter11Plan prints the plans of a rollout's first two syncs.
func TestChapter11Plan(t *testing.T) {
	d := web(10, "3", "2")
	d.UID, d.Annotations = "uid", map[string]string{"deployment.kubernetes.io/revision": "2"}
	d.Spec.Template.Spec.Containers[0].Image = "web:2"
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: "True"}}
	old := set(d, "web:1", time.Hour, 10, 10)
	var b strings.Builder
	for _, s := range []struct {
		title string
		sets  []*appsv1.ReplicaSet
	}{
		{"10 old Pods, all available; no ReplicaSet for web:2", []*appsv1.ReplicaSet{old}},
		{"10 old Pods; 3 new ones, not available yet", []*appsv1.ReplicaSet{old, set(d, "web:2", 0, 3, 0)}},
		{
			"8 old Pods; 5 new ones, of which 2 are available",
			[]*appsv1.ReplicaSet{set(d, "web:1", time.Hour, 8, 8), set(d, "web:2", 0, 5, 2)},
		},
	} {
		fmt.Fprintf(&b, "%s:\n", s.title)
		for _, line := range strings.Split(strings.TrimSpace(planOf(t, d, s.sets...)), "\n") {
			if strings.HasPrefix(line, "requeue") {
				continue
			}
			line = tail.ReplaceAllString(line, "")
			if line == "status" {
				line = "write the status"
			}
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	book.Trace(t, page, b.String())
}

var size = regexp.MustCompile(`(?m)^(?:create|edit) \S+ replicas=(\d+)`)

// resized returns the size in a plan's first step that has one.
func resized(plan string) int {
	n := -1
	if m := size.FindStringSubmatch(plan); m != nil {
		_, _ = fmt.Sscan(m[1], &n)
	}
	return n
}

// TestChapter11Limits shows what limits come to, by the first two plans of a rollout.
func TestChapter11Limits(t *testing.T) {
	table := "| replicas | maxSurge | maxUnavailable | Pods at most | available at least |\n|---|---|---|---|---|\n"
	for _, l := range []struct {
		replicas           int
		surge, unavailable string
	}{
		{10, "25%", "25%"}, {10, "3", "2"}, {4, "25%", "25%"}, {3, "25%", "25%"}, {1, "25%", "25%"}, {3, "0", "25%"},
	} {
		d := web(l.replicas, l.surge, l.unavailable)
		d.Spec.Template.Spec.Containers[0].Image = "web:2"
		old := set(d, "web:1", time.Hour, int32(l.replicas), int32(l.replicas))
		grown := resized(planOf(t, d, old))
		rest := l.replicas
		second := planOf(t, d, old, set(d, "web:2", 0, int32(grown), 0))
		if n := resized(second); n >= 0 {
			rest = n
		}
		table += fmt.Sprintf("| %d | %s | %s | %d | %d |\n", l.replicas, l.surge, l.unavailable, l.replicas+grown, rest)
	}
	book.Block(t, page, table)
}
