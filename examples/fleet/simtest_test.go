package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/simtest"
)

// joins creates a Project whose control plane answers.
func joins(u *simtest.User, name string) {
	u.Create(projectOf(name))
	simtest.UpdateStatus(u, projectOf(name), func(p *Project) {
		conditions.SetState(&p.Status.Conditions, p.Generation, conditions.IsReady, "Serving", "")
	})
}

// Clusters join and leave; an original comes, changes and goes; a copy is changed and deleted by others, waits for its
// namespace, and finds that its name is taken.
func TestSimulatedLife(t *testing.T) {
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(definition, &crd.Object); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	addToScheme(scheme)
	original, theirs := motd(), motd()
	original.Data, theirs.Labels = map[string]string{"text": "good morning"}, nil
	waiting := motd()
	waiting.Namespace = "team"
	team := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	simtest.Check(t, simtest.Scenario{
		Clusters: []string{"shop", "blog"},
		Objects:  []runtime.Object{crd},
		Scheme:   scheme,
		Build: func(e *simtest.Env) (simtest.Program, error) {
			fleet, err := newFleet(e.Config(), options{discovery: discovery()})
			if err != nil {
				return nil, err
			}
			return fleet.Local(), nil
		},
		Budget: 2 * time.Second,
		Script: func(u *simtest.User) {
			shop, blog := u.In("shop"), u.In("blog")
			joins(u, "shop")
			u.Create(original)
			u.Create(team)
			u.Create(waiting)
			u.Settle()
			simtest.Update(u, original, func(m *corev1.ConfigMap) { m.Data["text"] = "good evening" })
			joins(u, "blog")
			u.Settle()
			simtest.Update(shop, motd(), func(m *corev1.ConfigMap) { m.Data["text"] = "bad evening" })
			blog.Delete(motd())
			shop.Create(team)
			u.Settle()
			simtest.Update(u, waiting, func(m *corev1.ConfigMap) { delete(m.Labels, originalLabel) })
			u.Settle()
			u.Delete(original)
			u.Settle()
			shop.Create(theirs)
			u.Create(original)
			u.Settle()
			u.Delete(projectOf("blog"))
			u.Settle()
			// What is in a cluster that has left is left alone. There is nothing in it if it was not seen to join.
			blog.Delete(motd())
		},
	})
}
