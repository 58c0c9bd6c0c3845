package chapter11

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers/deployment"
	"github.com/flyball-dev/flyball/controllers/replicaset"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
)

// TestChapter11Owners draws who owns whom in the middle of a rollout.
func TestChapter11Owners(t *testing.T) {
	inCluster(t, []string{deployment.Name, replicaset.Name}, func(c *cluster) {
		c.start(web(3, "1", "0"))
		pods := c.pods()
		for _, p := range pods {
			status := `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`
			_, err := c.Client().CoreV1().Pods("default").Patch(c.t.Context(), p.Name, types.MergePatchType,
				[]byte(status), metav1.PatchOptions{}, "status")
			c.must(err)
		}
		c.settle()
		c.image("web:2")
		book.Figure(t, "11-owners", c.drawOwners())
	})
}

func (c *cluster) pods() []corev1.Pod {
	c.t.Helper()
	list, err := c.Client().CoreV1().Pods("default").List(c.t.Context(), metav1.ListOptions{})
	c.must(err)
	return list.Items
}

func (c *cluster) drawOwners() *figure.Figure {
	c.t.Helper()
	f := figure.New("Who owns whom in the middle of a rollout",
		"The Deployment web owns two ReplicaSets, one for each version of its template. Each owns its Pods, which "+
			"carry the hash of the template as a label.", figure.Width, 300)
	d, sets, pods := c.deployment(), c.sets(), c.pods()
	f.Box(270, 24, 180, 54, figure.Plain, "Deployment "+d.Name, fmt.Sprintf("replicas %d, %s", *d.Spec.Replicas,
		d.Spec.Template.Spec.Containers[0].Image))
	column := 0
	const width = 164.0
	for i, rs := range sets {
		class := []figure.Class{figure.A, figure.Lit}[i]
		if ref := metav1.GetControllerOf(&rs); ref == nil || ref.UID != d.UID {
			c.t.Errorf("%s belongs to %v", rs.Name, ref)
		}
		var own []corev1.Pod
		for _, p := range pods {
			if ref := metav1.GetControllerOf(&p); ref != nil && ref.UID == rs.UID {
				own = append(own, p)
			}
		}
		from := float64(column)
		middle := 32 + width*(from+float64(len(own))/2)
		f.Box(middle-105, 124, 210, 54, class, rs.Name, fmt.Sprintf("replicas %d, %s", *rs.Spec.Replicas, imageOf(&rs)))
		f.Arrow(figure.Muted, figure.Point{X: middle, Y: 120}, figure.Point{X: 330 + 60*float64(i), Y: 82})
		for _, p := range own {
			x := 32 + width*float64(column)
			hash := p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
			if hash != rs.Labels[appsv1.DefaultDeploymentUniqueLabelKey] || !strings.HasSuffix(rs.Name, hash) {
				c.t.Errorf("the Pod %s has the hash %s", p.Name, hash)
			}
			// Pods that are created at the same time get their random names in any order: the figure numbers them.
			f.Box(x+4, 224, width-8, 54, class, fmt.Sprintf("Pod %d", column+1), "hash "+hash)
			below := figure.Point{X: x + width/2, Y: 220}
			f.Arrow(figure.Muted, below, figure.Point{X: (middle*3 + below.X) / 4, Y: 182})
			column++
		}
	}
	return f
}

// TestChapter11Script is the rollout as a script that is killed in the middle, and started again.
func TestChapter11Script(t *testing.T) {
	set := func(name string, size int32) *appsv1.ReplicaSet {
		labels := map[string]string{"app": "web", "version": name}
		return &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: name, CreationTimestamp: metav1.NewTime(now.AddDate(-30, 0, int(-size))),
			},
			Spec: appsv1.ReplicaSetSpec{
				Replicas: ptr.To(size), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: name}}},
				},
			},
			Status: appsv1.ReplicaSetStatus{Replicas: size, AvailableReplicas: size, ReadyReplicas: size},
		}
	}
	var b strings.Builder
	inCluster(t, nil, func(c *cluster) {
		s := script{sets: c.Client().AppsV1().ReplicaSets("default"), old: "old", new: "new", count: 10}
		try := func(ctx context.Context, kill func(n int)) error {
			s.wait = func(_ string, n int) {
				c.follow()
				c.serve()
				kill(n)
			}
			return s.run(ctx)
		}
		rows := c.roll(func() {
			ctx, cancel := context.WithCancel(c.t.Context())
			err := try(ctx, func(n int) {
				if n == 6 {
					cancel() // The machine burns down.
				}
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the first script: %v", err)
			}
		})
		first := describe(rows)
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Hour)
		defer cancel()
		rows = c.roll(func() { c.must(try(ctx, func(int) {})) })
		if n := rows[1].sets[1].wanted; n >= rows[0].sets[1].wanted {
			t.Errorf("the second script goes on with %d new Pods", n)
		}
		lines := strings.Split(strings.TrimSpace(first), "\n")
		fmt.Fprintf(&b, "%s\n…\n%s\nthe script is killed, and started again\n", strings.Join(lines[:4], "\n"),
			strings.Join(lines[len(lines)-3:], "\n"))
		lines = strings.Split(strings.TrimSpace(describe(rows)), "\n")
		fmt.Fprintf(&b, "%s\n…\n", strings.Join(lines[1:5], "\n"))
	}, set("old", 10), set("new", 0))
	book.Trace(t, page, b.String())
}

// TestChapter11Adopt deletes a Deployment and spares its ReplicaSet, which is then somebody's again.
func TestChapter11Adopt(t *testing.T) {
	var b strings.Builder
	inCluster(t, justDeployment, func(c *cluster) {
		c.create(web(3, "1", "0"))
		deployments := c.Client().AppsV1().Deployments("default")
		c.must(deployments.Delete(c.t.Context(), "web", metav1.DeleteOptions{}))
		set := c.sets()[0]
		// This is what the garbage collector does for a deletion that orphans.
		_, err := c.Client().AppsV1().ReplicaSets("default").Patch(c.t.Context(), set.Name, types.MergePatchType,
			[]byte(`{"metadata":{"ownerReferences":null}}`), metav1.PatchOptions{})
		c.must(err)
		c.settle()
		c.written()
		fmt.Fprintf(&b, "the Deployment is deleted, its ReplicaSets are spared: %s has %d owners\n", set.Name,
			len(c.sets()[0].OwnerReferences))
		c.start(web(3, "1", "0"))
		fmt.Fprintf(&b, "the same Deployment is created again; its controller writes\n  %s\n",
			strings.Join(c.written(), "\n  "))
		sets := c.sets()
		if len(sets) != 1 || !metav1.IsControlledBy(&sets[0], c.deployment()) {
			t.Errorf("there are %d ReplicaSets, the first belongs to %v", len(sets), sets[0].OwnerReferences)
		}
		fmt.Fprintf(&b, "there is %d ReplicaSet, with %d Pods; its owner is %s\n", len(sets), sets[0].Status.Replicas,
			sets[0].OwnerReferences[0].Name)
	})
	book.Trace(t, page, b.String())
}

// TestChapter11Collision: another ReplicaSet has the name of the new one.
func TestChapter11Collision(t *testing.T) {
	var name string
	inCluster(t, justDeployment, func(c *cluster) {
		c.create(web(3, "1", "0"))
		name = c.sets()[0].Name
	})
	foreign := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "other"}},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "other"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "other:1"}}},
			},
		},
	}
	inCluster(t, justDeployment, func(c *cluster) {
		c.start(web(3, "1", "0"))
		writes := c.written()
		if !slices.Contains(writes, "create replicasets "+name+": 409") || len(c.sets()) != 2 {
			t.Errorf("writes %q", writes)
		}
		book.Trace(t, page, strings.Join(writes[:min(4, len(writes))], "\n"))
	}, foreign)
}
