package deployment

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers/deployment/internal/replicasets"
)

// rewritten is a ReplicaSet that was made for d's template at this collision count, and changed; it is of that age.
func rewritten(d *appsv1.Deployment, collisions int32, age time.Duration) *appsv1.ReplicaSet {
	var count *int32
	if collisions > 0 {
		count = &collisions
	}
	rs := set(d, 1, "mirror/v2", 3)
	rs.Name = replicasets.Name(d.Name, replicasets.ComputeHash(&d.Spec.Template, count))
	rs.CreationTimestamp = metav1.NewTime(epoch.Add(-age))
	return rs
}

// After three ReplicaSets that a webhook changed, each further one comes after twice the delay, at most an hour.
func TestRewrittenReplicaSetsAreSpaced(t *testing.T) {
	for _, tc := range []struct {
		collisions int32
		made       []int32 // their collision counts, latest first
		age        time.Duration
		wait       time.Duration // zero: it makes another
	}{
		{1, []int32{1, 0}, time.Second, 0},
		{2, []int32{2, 1, 0}, time.Second, 59 * time.Second},
		{2, []int32{2, 1, 0}, time.Minute, 0},
		{3, []int32{3, 2, 1, 0}, time.Minute, time.Minute},
		{3, []int32{2, 1, 0}, time.Second, 59 * time.Second}, // the name after the collision has not been used yet
		{5, []int32{5, 4, 2, 1}, time.Second, 0},             // not in a row: other templates
		{20, []int32{20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10}, time.Second, time.Hour - time.Second},
	} {
		for _, strategy := range []deploymentChange{rolling("25%", "25%"), recreate} {
			d := web(3, strategy, statusWas(3, 0, 3, 3), func(d *appsv1.Deployment) {
				d.Status.CollisionCount = ptr.To(tc.collisions)
			})
			var rss []*appsv1.ReplicaSet
			for i, n := range tc.made {
				rss = append(rss, rewritten(d, n, tc.age+time.Duration(i)*time.Second))
			}
			plan := mustPlan(t, d, rss...)
			waits := strings.Contains(plan.String(), "ReplicaSetRewritten")
			if waits != (tc.wait > 0) || waits && plan.RequeueAfter != tc.wait {
				t.Errorf("%d collisions, made %v, %v ago, %s: waits %v for %v, want %v", tc.collisions, tc.made, tc.age,
					d.Spec.Strategy.Type, waits, plan.RequeueAfter, tc.wait)
			}
			if waits && strings.Contains(plan.String(), "edit ") {
				t.Errorf("pods are touched while it waits:\n%s", plan)
			}
		}
	}
}
