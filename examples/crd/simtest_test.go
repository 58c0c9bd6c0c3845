package main

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/simulated"
)

// registered is a name server whose entries are in a ConfigMap, so that a scenario sees them, and can break off between
// a change of them and the next write.
type registered struct{ client.Client }

func (r registered) Set(ctx context.Context, domain, target string) error {
	names := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "names"}}
	_, err := controllerutil.CreateOrUpdate(ctx, r, names, func() error {
		if names.Data == nil {
			names.Data = map[string]string{}
		}
		names.Data[domain] = target
		return nil
	})
	return err
}

func (r registered) Remove(ctx context.Context, domain, target string) error {
	names := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "names"}}
	_, err := controllerutil.CreateOrUpdate(ctx, r, names, func() error {
		if names.Data[domain] == target {
			delete(names.Data, domain)
		}
		return nil
	})
	return err
}

// A Website is published, changed, deleted and created again; another one waits for its domain.
func TestSimulatedLife(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	addToScheme(scheme)
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(crd, &definition.Object); err != nil {
		t.Fatal(err)
	}
	site := func(name string) *Website {
		return &Website{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       WebsiteSpec{Domain: "example.org", HTML: "hello"},
		}
	}
	roles := append(simulated.Roles(t, "role.yaml"), rbacv1.PolicyRule{ // what the manager and the name server read
		APIGroups: []string{""}, Resources: []string{"namespaces", "configmaps"}, Verbs: []string{"get"},
	})
	simtest.Check(t, simtest.Scenario{
		Roles:   roles,
		Scheme:  scheme,
		Objects: []runtime.Object{definition},
		Build: func(e *simtest.Env) (simtest.Program, error) {
			direct, err := client.New(e.Config(), client.Options{})
			if err != nil {
				return nil, err
			}
			return newManager(context.Background(), e.Config(), registered{direct})
		},
		Others: []func(*simtest.Env) (simtest.Program, error){
			simulated.GarbageCollector(corev1.Resource("configmaps"),
				groupVersion.WithResource("websites").GroupResource()),
		},
		Budget: time.Second,
		Script: func(u *simtest.User) {
			u.Create(site("a"))
			u.Settle()
			u.Create(site("b"))
			u.Settle()
			simtest.Update(u, site("a"), func(w *Website) { w.Spec.HTML = "hello again" })
			u.Settle()
			u.Delete(site("a"))
			u.Settle()
			u.Create(site("c"))
			u.Delete(site("b"))
			u.Delete(site("c"))
			u.Settle()
		},
	})
}
