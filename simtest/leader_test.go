package simtest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// counted keeps the annotation "seen" of ConfigMaps equal to their data.
type counted struct{ client.Client }

func (c *counted) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var m corev1.ConfigMap
	if err := c.Get(ctx, r.NamespacedName, &m); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if m.Data["text"] == "" || m.Annotations["seen"] == m.Data["text"] {
		return ctrl.Result{}, nil
	}
	m.Annotations = map[string]string{"seen": m.Data["text"]}
	return ctrl.Result{}, c.Update(ctx, &m)
}

// TestLeaders: two processes of a manager, whose leader is paused before each write, harm nothing.
func TestLeaders(t *testing.T) {
	task := func() *corev1.ConfigMap {
		m := &corev1.ConfigMap{Data: map[string]string{"text": "one"}}
		m.Namespace, m.Name = "default", "task"
		return m
	}
	c := newChecker(t, &Scenario{
		Build: func(e *Env) (Program, error) {
			mgr, err := ctrl.NewManager(e.Config(), ctrl.Options{LeaderElection: manager.LeaderElection{
				Enabled:   true,
				Namespace: "default", Name: "lease", Identity: fmt.Sprint("process-", e.Incarnation()),
			}})
			if err != nil {
				return nil, err
			}
			return mgr, ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(&counted{mgr.GetClient()})
		},
		Script: func(u *User) {
			u.Create(task())
			u.Settle()
			Update(u, task(), func(m *corev1.ConfigMap) { m.Data["text"] = "two" })
		},
		Leases: true,
	}, Options{})
	if !c.baseline() {
		return
	}
	plans := c.pausedLeaders().plans
	if len(plans) != 2 {
		t.Fatalf("%d plans, want one for each write", len(plans))
	}
	for _, p := range plans {
		r := c.try(p, limits{})
		story := tellStory(r.story, len(r.story))
		if len(r.findings) > 0 || r.struck != 1 || !strings.Contains(story, "program 2: has the lease") {
			t.Errorf("%v\n%s", r.findings, story)
		}
	}
}
