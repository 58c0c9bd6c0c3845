package namespaces_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/localapi/gate"
)

const rootName = "kube-root-ca.crt"

// root returns the ConfigMap of a namespace, or nil.
func (c *cluster) root(namespace string) *corev1.ConfigMap {
	c.t.Helper()
	synctest.Wait()
	config, err := c.client.CoreV1().ConfigMaps(namespace).Get(c.ctx, rootName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	c.must(err)
	return config
}

// TestRootCertificates: every namespace has them, they come back when they are deleted or changed, and only then are
// they written.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/certificates/rootcacertpublisher/publisher_test.go.
func TestRootCertificates(t *testing.T) {
	inClusterOf(t, nil, []byte("PEM"), func(c *cluster) {
		c.namespace("shop")
		configs := c.client.CoreV1().ConfigMaps("shop")
		for _, change := range []struct {
			name string
			do   func(*corev1.ConfigMap) error
			lost bool // it is not the same object that comes back
		}{
			{name: "delete", lost: true, do: func(*corev1.ConfigMap) error {
				return configs.Delete(c.ctx, rootName, metav1.DeleteOptions{})
			}},
			{name: "other certificates", do: func(config *corev1.ConfigMap) error {
				config.Data["ca.crt"] = "other"
				_, err := configs.Update(c.ctx, config, metav1.UpdateOptions{})
				return err
			}},
			{name: "a second file", do: func(config *corev1.ConfigMap) error {
				config.Data["more"] = "x"
				_, err := configs.Update(c.ctx, config, metav1.UpdateOptions{})
				return err
			}},
			{name: "no description", do: func(config *corev1.ConfigMap) error {
				config.Annotations = nil
				_, err := configs.Update(c.ctx, config, metav1.UpdateOptions{})
				return err
			}},
		} {
			before := c.root("shop")
			if before == nil {
				t.Fatal("the namespace has no certificates")
			}
			c.must(change.do(before.DeepCopy()))
			after := c.root("shop")
			if after == nil || len(after.Data) != 1 || after.Data["ca.crt"] != "PEM" ||
				after.Annotations["kubernetes.io/description"] == "" || (after.UID != before.UID) != change.lost {
				t.Errorf("%s: %+v", change.name, after)
			}
		}
		for _, namespace := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
			if c.root(namespace) == nil {
				t.Errorf("%s has no certificates", namespace)
			}
		}
		described := c.root("shop")
		described.Annotations["kubernetes.io/description"] = "ours"
		described.Labels = map[string]string{"a": "b"}
		_, err := configs.Update(c.ctx, described, metav1.UpdateOptions{})
		c.must(err)
		writes := c.accepted("update", "configmaps", "")
		if got := c.root("shop"); got.Labels["a"] != "b" || got.Annotations["kubernetes.io/description"] != "ours" {
			t.Errorf("a label and another description were overwritten: %+v", got)
		}
		if more := c.accepted("update", "configmaps", "") - writes; more != 0 {
			t.Errorf("%d updates although nothing was to do", more)
		}
		c.delete("shop")
		time.Sleep(time.Minute)
		if c.exists("shop") {
			t.Error("the certificates keep the namespace from going")
		}
	})
}

// TestRootCertificatesAreRetried: a server that fails for a while gets them later.
func TestRootCertificatesAreRetried(t *testing.T) {
	var failing atomic.Bool
	failing.Store(true)
	g := gate.Funcs{OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
		if failing.Load() && r.Resource == "configmaps" && r.Mutates() {
			return gate.FailWith(apierrors.NewInternalError(errors.New("no luck")))
		}
		return gate.Verdict{}
	}}
	inClusterOf(t, g, []byte("PEM"), func(c *cluster) {
		if c.root("default") != nil {
			t.Fatal("the writes did not fail")
		}
		failing.Store(false)
		time.Sleep(time.Minute)
		if c.root("default") == nil {
			t.Error("never published")
		}
	})
}

// TestNoRootCertificates: a server without TLS has nothing to publish.
func TestNoRootCertificates(t *testing.T) {
	inCluster(t, nil, func(c *cluster) {
		c.namespace("shop")
		if got := c.root("shop"); got != nil {
			t.Errorf("published: %+v", got)
		}
	})
}
