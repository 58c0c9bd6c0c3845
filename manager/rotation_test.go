package manager_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/certs"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/webhook"
)

func TestRotationRefusesNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		o := elected()
		o.LeaderElection.Identity = "a"
		first, at := w.replica(t, o)
		o.LeaderElection.Identity = "b"
		second, other := w.replica(t, o)
		configure(t, clientset(first))
		time.Sleep(65 * time.Second) // so that no bundle is read at the moment of a change
		began := secretOf(t, clientset(first))
		c := &caller{t: t, client: clientset(first)}
		c.every(time.Minute, 58*time.Minute, at, other)
		c.every(cacheFor, 5*time.Minute, at, other) // The authority changes.
		c.every(time.Minute, 35*time.Minute, at, other)
		now := secretOf(t, clientset(first))
		for _, key := range []string{"tls.crt", "ca.crt", "ca.key"} {
			if string(began.Data[key]) == string(now.Data[key]) {
				t.Errorf("%s is as at the beginning", key)
			}
		}
		if n := strings.Count(string(now.Data["ca.crt"]), "BEGIN"); n != 2 {
			t.Errorf("%d authorities in the bundle, want the new and the old one", n)
		}
		for _, l := range []*life{first, second} {
			if err := l.Ready(); err != nil {
				t.Error(err)
			}
		}
		first.mustEnd() // The other replica leads now.
		c.client = clientset(second)
		c.every(5*time.Minute, 100*time.Minute, other)
		second.mustEnd()
	})
}

// editSecret changes the Secret as a person would.
func editSecret(l *life, change func(*corev1.Secret)) error {
	api := clientset(l).CoreV1().Secrets("default")
	s, err := api.Get(l.t.Context(), "hooks-cert", metav1.GetOptions{})
	if err != nil {
		return err
	}
	change(s)
	_, err = api.Update(l.t.Context(), s, metav1.UpdateOptions{})
	return err
}

func garble(keys ...string) func(*life) error {
	return func(l *life) error {
		return editSecret(l, func(s *corev1.Secret) {
			for _, key := range keys {
				s.Data[key] = []byte("-----BEGIN NONSENSE-----")
			}
		})
	}
}

func deleteSecret(l *life) error {
	return clientset(l).CoreV1().Secrets("default").Delete(l.t.Context(), "hooks-cert", metav1.DeleteOptions{})
}

func setBundle(text string) func(*life) error {
	return func(l *life) error {
		api := clientset(l).AdmissionregistrationV1().ValidatingWebhookConfigurations()
		c, err := api.Get(l.t.Context(), "hooks", metav1.GetOptions{})
		if err != nil {
			return err
		}
		c.Webhooks[0].ClientConfig.CABundle = []byte(text)
		_, err = api.Update(l.t.Context(), c, metav1.UpdateOptions{})
		return err
	}
}

func replaceConfiguration(l *life) error {
	api := clientset(l).AdmissionregistrationV1().ValidatingWebhookConfigurations()
	err := api.Delete(l.t.Context(), "hooks", metav1.DeleteOptions{})
	configure(l.t, clientset(l))
	return err
}

func TestRotationOutlivesPeople(t *testing.T) {
	for name, meddle := range map[string]func(l *life) error{
		"the Secret is deleted": deleteSecret,
		"the Secret is emptied": func(l *life) error {
			return editSecret(l, func(s *corev1.Secret) { s.Data = nil })
		},
		"the certificate is garbled":  garble("tls.crt"),
		"the key is garbled":          garble("tls.key"),
		"the authority is garbled":    garble("ca.crt"),
		"the authority's key is lost": garble("ca.key"),
		"everything is garbled":       garble("tls.crt", "tls.key", "ca.crt", "ca.key"),
		"the bundle is emptied":       setBundle(""),
		"the bundle is garbled":       setBundle("-----BEGIN NONSENSE-----"),
		"the bundle is another's": func(l *life) error {
			other, err := certs.Named("other", time.Hour)
			if err != nil {
				return err
			}
			return setBundle(string(other.PEM()))(l)
		},
		"the configuration is anew": replaceConfiguration,
	} {
		t.Run(name, func(t *testing.T) {
			one(t, func(t *testing.T, _ *world, l *life, at *pipes, c *caller) {
				if err := meddle(l); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				time.Sleep(time.Second)
				c.every(3*time.Second, time.Minute, at)
				if err := l.Ready(); err != nil {
					t.Error(err)
				}
				s := secretOf(t, clientset(l))
				if _, err := tls.X509KeyPair(s.Data["tls.crt"], s.Data["tls.key"]); err != nil {
					t.Errorf("the Secret was not mended: %v", err)
				}
				if len(s.Data["ca.key"]) < 100 || len(s.Data["ca.crt"]) < 100 {
					t.Error("the authority was not mended")
				}
			})
		})
	}
}

// A replica that restarts no longer has the state in memory, so the authority's key is lost.
func TestRotationAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l, _ := w.replica(t, manager.Options{})
		configure(t, clientset(l))
		time.Sleep(time.Second)
		l.mustEnd()
		if err := deleteSecret(l); err != nil {
			t.Fatal(err)
		}
		former := bundleOf(t, clientset(l))
		l, at := w.replica(t, manager.Options{})
		time.Sleep(time.Second)
		if err := l.Ready(); err == nil || !strings.Contains(err.Error(), "no certificate yet") {
			t.Errorf("before its authority is trusted everywhere it is ready: %v", err)
		}
		if now := bundleOf(t, clientset(l)); !strings.Contains(string(now), string(former)) || len(now) == len(former) {
			t.Error("the authority that others may still serve with is not trusted beside the new one")
		}
		time.Sleep(time.Minute)
		(&caller{t: t, client: clientset(l)}).every(3*time.Second, time.Minute, at)
		l.mustEnd()
	})
}

// Two replicas without an election start at once. Both make an authority; one of them gets it written.
func TestRotationOfTwoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		configure(t, clientset(w.manager(t, manager.Options{})))
		first, at := w.replica(t, manager.Options{})
		second, other := w.replica(t, manager.Options{})
		time.Sleep(10 * time.Second)
		(&caller{t: t, client: clientset(first)}).every(5*time.Minute, 4*time.Hour, at, other)
		first.mustEnd()
		second.mustEnd()
	})
}

// The clock was wrong when the certificates were made, or is wrong now. So the certificates have expired, or are not
// valid yet.
func TestRotationWhenTheClockJumps(t *testing.T) {
	var future *corev1.Secret
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(48 * time.Hour)
		w := newWorld(t)
		l, _ := w.replica(t, manager.Options{})
		configure(t, clientset(l))
		time.Sleep(time.Second)
		future = secretOf(t, clientset(l))
		l.mustEnd()
		time.Sleep(24 * time.Hour)
		l, at := w.replica(t, manager.Options{})
		time.Sleep(time.Second)
		(&caller{t: t, client: clientset(l)}).every(3*time.Second, time.Minute, at)
		l.mustEnd()
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		api := clientset(w.manager(t, manager.Options{}))
		future.ResourceVersion, future.UID = "", ""
		if _, err := api.CoreV1().Secrets("default").Create(t.Context(), future, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		configure(t, api)
		l, at := w.replica(t, manager.Options{})
		time.Sleep(30 * time.Second) // It is unknown whose clock is wrong, and others may serve these certificates.
		if now := bundleOf(t, api); !strings.Contains(string(now), string(future.Data["ca.crt"])) {
			t.Error("an authority that has not begun was dropped")
		}
		(&caller{t: t, client: clientset(l)}).every(3*time.Second, time.Minute, at)
		l.mustEnd()
	})
}

// The Secret is lost, and a replica restores an older state of it. The newer authority stays trusted, because other
// replicas may serve certificates that it signed.
func TestRotationRestoresNoOlderTrust(t *testing.T) {
	one(t, func(t *testing.T, w *world, l *life, at *pipes, c *caller) {
		w.refuse(func(r *gate.Request) gate.Verdict {
			if r.Verb == "get" && r.Resource == "secrets" {
				return gate.FailWith(apierrors.NewTooManyRequestsError("later"))
			}
			return gate.Verdict{}
		})
		newer, err := certs.Named("flyball-webhooks default/hooks-cert", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		bundle := string(newer.PEM()) + string(bundleOf(t, clientset(l)))
		if err := errors.Join(deleteSecret(l), setBundle(bundle)(l)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.refuse(nil)
		time.Sleep(time.Minute)
		if now := string(bundleOf(t, clientset(l))); !strings.Contains(now, string(newer.PEM())) {
			t.Error("the newer authority was dropped")
		}
		c.every(3*time.Second, time.Minute, at)
	})
}

// The certificate is also valid for IP addresses. The Secret is not written again and again.
func TestRotationOfAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l, at := w.replica(t, manager.Options{}, func(c *webhook.Certificates) {
			c.DNSNames = []string{"10.0.0.1", "2001:db8::0001", "*.hooks.example"}
		})
		configure(t, clientset(l))
		time.Sleep(time.Minute)
		for _, name := range []string{"10.0.0.1", "2001:db8::1", "a.hooks.example", "hooks.default.svc"} {
			c := &caller{t: t, client: clientset(l), bundle: bundleOf(t, clientset(l)), name: name}
			if err := c.call(at); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := w.writes("secrets"); len(got) != 1 {
			t.Errorf("%d writes of the Secret, want 1", len(got))
		}
		l.mustEnd()
	})
}

// /readyz names a missing permission, with its verb and resource.
func TestRotationWithoutPermission(t *testing.T) {
	for verb, says := range map[string]string{
		"create": `cannot create resource "secrets"`,
		"update": `cannot update resource "validatingwebhookconfigurations"`,
		"get":    `cannot get resource "secrets"`,
	} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.refuse(func(r *gate.Request) gate.Verdict {
					if r.Verb != verb || !strings.Contains(says, r.Resource) || r.Resource == "" {
						return gate.Verdict{}
					}
					return gate.FailWith(apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource}, r.Name,
						fmt.Errorf("User %q cannot %s resource %q", "intern", verb, r.Resource)))
				})
				l, at := w.replica(t, manager.Options{})
				configure(t, clientset(l))
				time.Sleep(time.Second)
				if err := l.Ready(); err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("ready: %v, want: %s", err, says)
				}
				w.refuse(nil)
				time.Sleep(2 * time.Minute)
				(&caller{t: t, client: clientset(l)}).every(time.Second, 10*time.Second, at)
				if err := l.Ready(); err != nil {
					t.Error(err)
				}
				l.mustEnd()
			})
		})
	}
}
