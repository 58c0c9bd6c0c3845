package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/ensure"
	"github.com/flyball-dev/flyball/localapi"
)

func secret(namespace, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ensure.PullSecretName},
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte(value)},
		Type:       corev1.SecretTypeDockerConfigJson,
	}
}

func setUp(t *testing.T, namespaces ...string) (*localapi.Test, client.Client) {
	server := localapi.NewTestWith(t, localapi.Options{Namespaces: namespaces})
	c, err := client.New(server.RESTConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return server, c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Source: the rows of TestEnsureImagePullSecret of openshift/ci-tools; and the second time nothing is written.
func TestPullSecret(t *testing.T) {
	server, c := setUp(t, "ci", "test-credentials", "team")
	ctx := t.Context()
	value := func(namespace string) string {
		t.Helper()
		s := &corev1.Secret{}
		must(t, c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ensure.PullSecretName}, s))
		return string(s.Data[corev1.DockerConfigJsonKey])
	}
	if err := ensure.PullSecret(ctx, c, "team"); err == nil {
		t.Error("there is nothing to copy, and nobody says so")
	}
	source := secret("ci", `{"a":1}`)
	must(t, c.Create(ctx, source))
	must(t, ensure.PullSecret(ctx, c, "team"))
	if got := value("team"); got != `{"a":1}` {
		t.Errorf("the copy is %s", got)
	}
	source.Data[corev1.DockerConfigJsonKey] = []byte(`{"a":2}`)
	must(t, c.Update(ctx, source))
	must(t, ensure.PullSecret(ctx, c, "team"))
	if got := value("team"); got != `{"a":2}` {
		t.Errorf("the copy is still %s", got)
	}
	server.AssertNoWrites(func() {
		for _, namespace := range []string{"team", "ci", "test-credentials"} {
			must(t, ensure.PullSecret(ctx, c, namespace))
		}
	})
}

func TestNamespace(t *testing.T) {
	server, c := setUp(t)
	ctx := t.Context()
	monitored := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "old",
			Labels: map[string]string{"openshift.io/cluster-monitoring": "true", "a": "b"},
		},
	}
	must(t, c.Create(ctx, monitored))
	for _, name := range []string{"new", "old"} {
		must(t, ensure.Namespace(ctx, c, name))
		ns := &corev1.Namespace{}
		must(t, c.Get(ctx, client.ObjectKey{Name: name}, ns))
		if ns.Labels["openshift.io/user-monitoring"] != "false" ||
			ns.Labels["openshift.io/cluster-monitoring"] != "" || name == "old" && ns.Labels["a"] != "b" {
			t.Errorf("%s has labels %v", name, ns.Labels)
		}
	}
	server.AssertNoWrites(func() {
		must(t, ensure.Namespace(ctx, c, "new"))
		must(t, ensure.Namespace(ctx, c, "old"))
	})
}
