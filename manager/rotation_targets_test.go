package manager_test

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/webhook"
)

// keptBundle is a caBundle that the manager writes: the object that has it, and the path to the clientConfig.
type keptBundle struct {
	apiVersion, kind, name string
	path                   []string
}

var (
	inMutating   = keptBundle{"admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "hooks", nil}
	inDefinition = keptBundle{
		"apiextensions.k8s.io/v1", "CustomResourceDefinition", "websites.web.example.org",
		[]string{"spec", "conversion", "webhook"},
	}
)

// edit changes the caBundle as a person would, and returns the old one.
func (k keptBundle) edit(t *testing.T, user *client.Cluster, bundle []byte) (was string) {
	t.Helper()
	u := k.get(t, user)
	config := k.in(u)
	was, _ = config["caBundle"].(string)
	config["caBundle"] = base64.StdEncoding.EncodeToString(bundle)
	if err := user.Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	return was
}

func (k keptBundle) get(t *testing.T, user *client.Cluster) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": k.apiVersion, "kind": k.kind}}
	if err := user.Get(t.Context(), client.ObjectKey{Name: k.name}, u, client.Live); err != nil {
		t.Fatal(err)
	}
	return u
}

// in returns the clientConfig in the object.
func (k keptBundle) in(u *unstructured.Unstructured) map[string]any {
	at := u.Object
	for _, field := range k.path {
		at, _ = at[field].(map[string]any)
	}
	if webhooks, ok := at["webhooks"].([]any); ok {
		at, _ = webhooks[0].(map[string]any)
	}
	config, _ := at["clientConfig"].(map[string]any)
	return config
}

// The manager keeps the authority in configurations of both kinds, and in the conversion of a definition. It does so
// through a rotation and after people have edited them. A definition that does not convert by a webhook is not changed.
func TestRotationInEveryTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l, at := w.replica(t, manager.Options{}, func(c *webhook.Certificates) {
			c.MutatingWebhooks = []string{"hooks"}
			c.CustomResourceDefinitions = []string{inDefinition.name, "others.web.example.org"}
		})
		other := strings.NewReplacer("websites", "others", "website", "other", "Website", "Other").Replace(
			websiteManifests[:strings.Index(websiteManifests, "\n---\n")])
		other = other[:strings.Index(other, "  conversion:")] + other[strings.Index(other, "  versions:"):]
		user := installSites(t, w, &noted{}, websiteManifests+"---"+other)
		plain := keptBundle{inDefinition.apiVersion, inDefinition.kind, "others.web.example.org", nil}.get(t, user)
		time.Sleep(time.Second)
		check := func(when string) {
			t.Helper()
			want := base64.StdEncoding.EncodeToString(secretOf(t, clientset(l)).Data["ca.crt"])
			for _, k := range []keptBundle{inMutating, inDefinition} {
				if got := k.in(k.get(t, user))["caBundle"]; got != want {
					t.Errorf("%s, %s has the bundle %v, want %s", when, k.kind, got, want)
				}
			}
			if err := (&caller{t: t, client: clientset(l), bundle: bundleOf(t, clientset(l))}).call(at); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
		check("at first")
		for _, k := range []keptBundle{inMutating, inDefinition} {
			k.edit(t, user, nil)
			time.Sleep(time.Second)
			check(k.kind + " was emptied")
		}
		if err := user.Delete(t.Context(), inDefinition.get(t, user)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		installSites(t, w, &noted{}, websiteManifests)
		time.Sleep(time.Second)
		check("the definition is anew")
		former := secretOf(t, clientset(l)).Data["ca.crt"]
		time.Sleep(90 * time.Minute) // The authority changes.
		check("rotated")
		if bytes.Equal(former, secretOf(t, clientset(l)).Data["ca.crt"]) {
			t.Error("the authority has not changed")
		}
		now := keptBundle{inDefinition.apiVersion, inDefinition.kind, "others.web.example.org", nil}.get(t, user)
		if now.GetResourceVersion() != plain.GetResourceVersion() {
			t.Error("a definition without a webhook was changed")
		}
		l.mustEnd()
	})
}

// Three API servers call both replicas every second while the certificate is renewed and while the authority changes.
// Each trusts the bundle that it read last, and reads it again after a random time of up to cacheFor.
func TestRotationUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := elected()
		o.LeaderElection.Identity = "a"
		first, at := w.replica(t, o)
		o.LeaderElection.Identity = "b"
		second, other := w.replica(t, o)
		configure(t, clientset(first))
		time.Sleep(time.Minute)
		changed := map[string]int{}
		for i := range 3 { // one round for each certificate; the authority changes in the last
			before := secretOf(t, clientset(first)).Data
			pair, err := tls.X509KeyPair(before["tls.crt"], before["tls.key"])
			if err != nil {
				t.Fatal(err)
			}
			lifetime := pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)
			time.Sleep(time.Until(pair.Leaf.NotAfter.Add(-lifetime/3)) - 30*time.Second)
			if now := secretOf(t, clientset(first)).Data; !bytes.Equal(now["tls.crt"], before["tls.crt"]) {
				t.Error("the certificate was renewed before the calls began")
			}
			if i == 1 { // a renewal like the first
				time.Sleep(time.Minute)
				continue
			}
			loaded(t, first, 75*time.Second, at, other)
			for key, now := range secretOf(t, clientset(first)).Data {
				if !bytes.Equal(before[key], now) {
					changed[key]++
				}
			}
		}
		if changed["tls.crt"] != 2 || changed["ca.key"] != 1 {
			t.Errorf("changes during the calls: %v, want 2 of tls.crt and 1 of ca.key", changed)
		}
		first.mustEnd()
		second.mustEnd()
	})
}

// loaded calls the replicas for a time, from three goroutines. Every call must succeed.
func loaded(t *testing.T, l *life, span time.Duration, replicas ...*pipes) {
	t.Helper()
	var wg sync.WaitGroup
	errs := make(chan error, 3) // one send by each goroutine
	for i := range 3 {
		chance := rand.New(rand.NewPCG(uint64(i), 0))
		wg.Go(func() { errs <- calls(t, l, span, chance, replicas) })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}

func calls(t *testing.T, l *life, span time.Duration, chance *rand.Rand, replicas []*pipes) error {
	c := &caller{t: t, client: clientset(l)}
	var until time.Time // when the bundle is read again
	for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(time.Second) {
		if time.Now().After(until) {
			found, err := c.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "hooks",
				metav1.GetOptions{})
			if err != nil {
				return err
			}
			c.bundle = found.Webhooks[0].ClientConfig.CABundle
			until = time.Now().Add(time.Duration(chance.Int64N(int64(cacheFor))))
		}
		for i, at := range replicas {
			if err := c.call(at); err != nil {
				return fmt.Errorf("%v, replica %d: %w", time.Now().Format(time.DateTime), i, err)
			}
		}
	}
	return nil
}
