package manager_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/internal/serving"
	"github.com/flyball-dev/flyball/manager/internal/website"
	"github.com/flyball-dev/flyball/manager/webhook"
	"github.com/flyball-dev/flyball/manager/webhook/admission"
)

// The manifests of a kind with two versions, and of its webhooks.
const websiteManifests = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: websites.web.example.org}
spec:
  group: web.example.org
  scope: Namespaced
  names: {kind: Website, plural: websites, singular: website, listKind: WebsiteList}
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {namespace: default, name: hooks, path: /convert}}
  versions:
  - name: v1
    served: true
    storage: false
    schema: &any {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v2
    served: true
    storage: true
    schema: *any
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: hooks}
webhooks:
- name: mutate.web.example.org
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {namespace: default, name: hooks, path: /mutate-web-example-org-v1-website}}
  rules: [{apiGroups: [web.example.org], apiVersions: [v1], resources: [websites], operations: [CREATE, UPDATE]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hooks}
webhooks:
- name: validate.web.example.org
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {namespace: default, name: hooks, path: /validate-web-example-org-v1-website}}
  rules: [{apiGroups: [web.example.org], apiVersions: [v1], resources: [websites], operations: ["*"]}]
`

// sites defaults and validates websites.
type sites struct{}

func (sites) Default(_ context.Context, w *website.V1) error {
	if w.Spec.Port == 0 {
		w.Spec.Port = 80
	}
	return nil
}

func (sites) ValidateCreate(_ context.Context, w *website.V1) (admission.Warnings, error) {
	if w.Spec.Host == "" {
		return admission.Warnings{"see the manual"}, errors.New("spec.host is required")
	}
	return admission.Warnings{"v1 is old"}, nil
}

func (sites) ValidateUpdate(_ context.Context, old, w *website.V1) (admission.Warnings, error) {
	if old.Spec.Host != w.Spec.Host {
		return nil, errors.New("spec.host cannot be changed")
	}
	return nil, nil
}

func (sites) ValidateDelete(_ context.Context, w *website.V1) (admission.Warnings, error) {
	if w.Spec.Port == 443 {
		return nil, errors.New("it is in use")
	}
	return nil, nil
}

// noted are the warnings that a client received.
type noted struct {
	mu  sync.Mutex
	all []string
}

func (n *noted) HandleWarningHeader(_ int, _, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, text)
}

func (n *noted) take() (all []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	all, n.all = n.all, nil
	return all
}

// site returns a website of version v1 with a field that the Go type does not have.
func site(name, host string, port int64) *unstructured.Unstructured {
	spec := map[string]any{"unknown": "kept"}
	if host != "" {
		spec["host"] = host
	}
	if port != 0 {
		spec["port"] = port
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "web.example.org/v1", "kind": "Website",
		"metadata": map[string]any{"namespace": "default", "name": name}, "spec": spec,
	}}
}

// serveSites runs a manager whose webhooks the server calls, and returns a client of a user.
func serveSites(t *testing.T) (*life, *client.Cluster, *noted) {
	t.Helper()
	w, warned := newWorld(t), &noted{}
	m := w.manager(t, manager.Options{
		Scheme: website.Scheme(), Webhook: webhook.Options{Listener: newPipes()},
	})
	if err := builder.WebhookManagedBy(m).For(&website.V1{}).WithDefaulter(sites{}).WithValidator(sites{}).
		Complete(); err != nil {
		t.Fatal(err)
	}
	w.server.HandleWebhook("default/hooks", m.GetWebhookServer())
	l := live(t, m)
	user := installSites(t, w, warned, websiteManifests)
	time.Sleep(time.Second)
	warned.take()
	return l, user, warned
}

// installSites installs the manifests and returns a client of a user.
func installSites(t *testing.T, w *world, warned *noted, manifests string) *client.Cluster {
	t.Helper()
	config := rest.CopyConfig(w.server.RESTConfig())
	config.WarningHandler = warned
	user, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifest.Read("websites.yaml", strings.NewReader(manifests))
	if err != nil {
		t.Fatal(err)
	}
	if err := manifest.Install(t.Context(), user, objects); err != nil {
		t.Fatal(err)
	}
	return user
}

// An object that a user sends to an API server is defaulted, validated and converted before it is stored.
func TestWebhooksEndToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, user, warned := serveSites(t)
		a := site("a", "a.example", 0)
		if err := user.Create(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if got := warned.take(); !slices.Equal(got, []string{"v1 is old"}) {
			t.Errorf("warnings %q", got)
		}
		if port, _, _ := unstructured.NestedInt64(a.Object, "spec", "port"); port != 80 {
			t.Errorf("defaulted to %v", a.Object["spec"])
		}
		err := user.Create(t.Context(), site("b", "", 0))
		if err == nil || !strings.Contains(err.Error(), "validate.web.example.org") ||
			!strings.Contains(err.Error(), "spec.host is required") {
			t.Errorf("an invalid object: %v", err)
		}
		if got := warned.take(); !slices.Equal(got, []string{"see the manual"}) {
			t.Errorf("warnings of a refusal: %q", got)
		}
		if err := user.Create(t.Context(), site("c", "c.example", 443)); err != nil {
			t.Error(err)
		}
		err = user.Delete(t.Context(), site("c", "", 0))
		if err == nil || !strings.Contains(err.Error(), "it is in use") {
			t.Errorf("deleted: %v", err)
		}
		if err := unstructured.SetNestedField(a.Object, "other", "spec", "host"); err != nil {
			t.Fatal(err)
		}
		if err := user.Update(t.Context(), a); err == nil || !strings.Contains(err.Error(), "cannot be changed") {
			t.Errorf("updated: %v", err)
		}
		second := &unstructured.Unstructured{}
		second.SetAPIVersion("web.example.org/v2")
		second.SetKind("Website")
		key := client.ObjectKey{Namespace: "default", Name: "a"}
		if err := user.APIReader().Get(t.Context(), key, second); err != nil {
			t.Fatal(err)
		}
		ports, _, _ := unstructured.NestedSlice(second.Object, "spec", "ports")
		if len(ports) != 1 || ports[0] != int64(80) {
			t.Errorf("as v2: %v", second.Object["spec"])
		}
		l.mustEnd()
	})
}

// When the manager stops, it waits for the webhook requests in flight. After that, no request is answered.
func TestStopAnswersWebhooksInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, at := newWorld(t), newPipes()
		o := webhook.Options{Listener: at, Certificates: certificates()}
		m := w.manager(t, manager.Options{Webhook: o})
		slow := &webhook.Admission{Handler: admission.HandlerFunc(
			func(ctx context.Context, _ admission.Request) admission.Response {
				select {
				case <-time.After(4 * time.Second):
					return admission.Allowed("")
				case <-ctx.Done():
					return admission.Denied("cut short")
				}
			})}
		if err := m.GetWebhookServer().Register("/allow", slow); err != nil {
			t.Fatal(err)
		}
		l := live(t, m)
		configure(t, clientset(l))
		time.Sleep(time.Minute)
		c := &caller{t: t, client: clientset(l), bundle: bundleOf(t, clientset(l))}
		answered := make(chan error, 1)
		go func() { answered <- c.call(at) }()
		time.Sleep(time.Second)
		l.mustEnd()
		if err := <-answered; err != nil {
			t.Error(err)
		}
		if err := c.call(at); err == nil {
			t.Error("answered after the stop")
		}
	})
}

func TestReadinessOfWebhooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := w.manager(t, manager.Options{
			Webhook: webhook.Options{Listener: newPipes(), CertDir: "testdata/there-is-no-such-directory"},
		})
		l := live(t, m)
		if err := l.Ready(); err != nil {
			t.Errorf("without webhooks: %v", err)
		}
		if err := m.GetWebhookServer().Register("/allow", &webhook.Admission{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		const want = "webhooks: no certificate yet: certificate testdata/there-is-no-such-directory/tls.crt"
		if err := l.Ready(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without a certificate: %v", err)
		}
		if len(l.logs.with("There is no certificate yet")) != 1 {
			t.Errorf("logs: %q", l.logs.with("certificate"))
		}
		l.mustEnd()
	})
}

func TestWebhookPortThatIsTaken(t *testing.T) {
	server := localapi.NewTest(t)
	taken := listen(t)
	m, err := manager.New(server.RESTConfig(), manager.Options{
		Webhook: webhook.Options{Host: "127.0.0.1", Port: taken},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.GetWebhookServer().Register("/allow", &webhook.Admission{}); err != nil {
		t.Fatal(err)
	}
	if err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("run: %v", err)
	}
}

// An invalid port is rejected before anything starts.
func TestWebhookPortThatIsNone(t *testing.T) {
	_, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"},
		manager.Options{Webhook: webhook.Options{Port: 65536}})
	if err == nil || !strings.Contains(err.Error(), "Options.Webhook.Port is 65536") {
		t.Error(err)
	}
}

func TestCertificateOptions(t *testing.T) {
	for says, change := range map[string]func(*webhook.Certificates){
		"neither Service nor DNSNames":    func(c *webhook.Certificates) { c.Service = "" },
		`DNSNames has ""`:                 func(c *webhook.Certificates) { c.DNSNames = []string{"a", ""} },
		`DNSNames has "[::1]"`:            func(c *webhook.Certificates) { c.DNSNames = []string{"[::1]"} },
		"want at least an hour":           func(c *webhook.Certificates) { c.Lifetime = time.Minute },
		"want at least twice Lifetime":    func(c *webhook.Certificates) { c.AuthorityLifetime = time.Hour },
		"Certificates.Namespace is empty": func(c *webhook.Certificates) { c.Namespace = "" },
	} {
		c := certificates()
		change(&c)
		_, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"},
			manager.Options{Webhook: webhook.Options{Certificates: c}})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want: %s", err, says)
		}
	}
}

// A Service sends requests only to ready Pods, and the first list of a kind may need the conversion that this process
// serves. So readiness must not wait for the list.
func TestReadinessDoesNotWaitForItsOwnConversion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		self, err := serving.SelfSigned()
		if err != nil {
			t.Fatal(err)
		}
		m := w.manager(t, manager.Options{Scheme: website.Scheme(), Webhook: webhook.Options{
			Listener: newPipes(), TLSOpts: []func(*tls.Config){
				func(c *tls.Config) { c.Certificates = self.Certificates },
			},
		}})
		if err := builder.WebhookManagedBy(m).For(&website.V1{}).Complete(); err != nil {
			t.Fatal(err)
		}
		w.server.HandleWebhook("default/hooks", http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
			if err := m.Ready(); err != nil {
				http.Error(out, "no endpoints: "+err.Error(), http.StatusServiceUnavailable)
				return
			}
			m.GetWebhookServer().ServeHTTP(out, in)
		}))
		definition, _, _ := strings.Cut(websiteManifests, "---")
		user := installSites(t, w, &noted{}, definition)
		stored := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "web.example.org/v2", "kind": "Website",
			"metadata": map[string]any{"namespace": "default", "name": "a"},
		}}
		if err := user.Create(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		sites, err := informer.For[*website.V1](m.Informers())
		if err != nil {
			t.Fatal(err)
		}
		l := live(t, m)
		time.Sleep(time.Minute)
		if err := m.Ready(); err != nil {
			t.Errorf("ready: %v", err)
		}
		if code, body := get(m, "/readyz?verbose"); code != 200 ||
			!strings.Contains(body, "[+]informer websites.web.example.org ok\n") {
			t.Errorf("readyz: %d %s", code, body)
		}
		if n := len(sites.List("", labels.Everything())); n != 1 {
			t.Errorf("%d websites in the cache", n)
		}
		l.mustEnd()
	})
}
