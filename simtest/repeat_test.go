package simtest

import (
	"context"
	"flag"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

var repeats = flag.Int("sim.repeats", 20, "how often TestSamePlanSameTrace performs each plan")

// copier keeps three Secrets for each ConfigMap with the label "copy", and writes how many it has made.
type copier struct{ client.Client }

func (c *copier) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var source corev1.ConfigMap
	if err := c.Get(ctx, r.NamespacedName, &source); err != nil || source.Labels["copy"] == "" {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	for i := range 3 {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: fmt.Sprintf("%s-%d", r.Name, i),
		}}
		if _, err := ctrl.CreateOrUpdate(ctx, c, secret, func() error {
			secret.StringData = nil
			secret.Data = map[string][]byte{"text": []byte(source.Data["text"])}
			return ctrl.SetControllerReference(&source, secret, c.Scheme())
		}); err != nil {
			return ctrl.Result{}, err
		}
	}
	if source.Annotations["copied"] == source.Data["text"] {
		return ctrl.Result{}, nil
	}
	source.Annotations = map[string]string{"copied": source.Data["text"]}
	return ctrl.Result{}, c.Update(ctx, &source)
}

func newCopier(workers int) func(e *Env) (Program, error) {
	return func(e *Env) (Program, error) {
		mgr, err := ctrl.NewManager(e.Config(), ctrl.Options{})
		if err != nil {
			return nil, err
		}
		return mgr, ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).
			WithOptions(ctrl.ControllerOptions{Workers: workers}).Complete(&copier{mgr.GetClient()})
	}
}

func sources() []*corev1.ConfigMap {
	var list []*corev1.ConfigMap
	for i := range 6 {
		list = append(list, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: fmt.Sprintf("source-%d", i), Labels: map[string]string{"copy": "yes"},
			},
			Data: map[string]string{"text": "one"},
		})
	}
	return list
}

func copies(workers int) *Scenario {
	return &Scenario{
		Build: newCopier(workers),
		Script: func(u *User) {
			for _, s := range sources() {
				u.Create(s)
			}
			u.Settle()
			Update(u, sources()[0], func(s *corev1.ConfigMap) { s.Data["text"] = "two" })
		},
	}
}

// TestSamePlanSameTrace: the same plan leads to the same operations in the same order, with four workers that run on
// all processors, also with faults, crashes and a random schedule.
func TestSamePlanSameTrace(t *testing.T) {
	s := copies(4)
	c := &checker{t: t, s: s}
	plans := []*runPlan{
		{Seed: 1},
		{Seed: 1, Faults: []runFault{{Kind: crashAfter, At: 7}, {Kind: crashBefore, At: 12}}},
		{Seed: 1, Faults: []runFault{{Kind: lostAnswer, At: 5}, {Kind: conflict, At: 9}, {Kind: slowWatch, At: 3}}},
		{Seed: 7, Turns: map[int]int{}, random: true},
	}
	for _, p := range plans {
		first := c.perform(p.copyRandom(), limits{trace: true})
		if len(first.findings) > 0 || len(first.ops[atWrite]) < 20 {
			t.Fatalf("%+v: %v, %d writes", p, first.findings, len(first.ops[atWrite]))
		}
		for range *repeats {
			again := c.perform(p.copyRandom(), limits{trace: true})
			if d := firstDifference(first.trace, again.trace); d != "" {
				t.Fatalf("%+v: %s", p, d)
			}
		}
	}
}

// copyRandom returns a copy that is still random.
func (p *runPlan) copyRandom() *runPlan {
	q := p.copy()
	q.random = p.random
	return q
}
