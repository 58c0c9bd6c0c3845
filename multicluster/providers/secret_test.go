package providers

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/multicluster"
)

// hostKubeconfig returns a kubeconfig for a host.
func hostKubeconfig(host string) string {
	return "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n" +
		"clusters: [{name: k, cluster: {server: https://" + host + "}}]\nusers: [{name: u, user: {token: t}}]\n"
}

// secretOf returns a Secret with a kubeconfig.
func secretOf(name, text string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "fleet", Name: name,
			Labels: map[string]string{DefaultSecretLabel: "true", "env": "test"},
		},
		Data: map[string][]byte{DefaultSecretKey: []byte(text)},
	}
}

func ExampleNewSecrets() {
	server, err := localapi.New(localapi.Options{Namespaces: []string{"fleet"}})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	if err := server.Seed(ctx, secretOf("eu", hostKubeconfig("eu.example"))); err != nil {
		log.Fatal(err)
	}
	local, err := manager.New(server.RESTConfig(), manager.Options{})
	if err != nil {
		log.Fatal(err)
	}
	provider, err := NewSecrets(local, SecretOptions{Namespace: "fleet"})
	if err != nil {
		log.Fatal(err)
	}
	fleet := &recorder{OnSynced: cancel} // in place of a multicluster.Manager's fleet
	done := make(chan error)
	go func() { done <- local.Run(ctx) }()
	fmt.Println(provider.Run(ctx, fleet), <-done, fleet.Names())
	// Output: <nil> <nil> eu
}

// secrets is a server and a running provider.
type secrets struct {
	t     *testing.T
	ctx   context.Context
	them  kubernetes.Interface
	fleet *recorder
	p     multicluster.Provider
}

func inSecrets(t *testing.T, o SecretOptions, test func(w *secrets)) {
	synctest.Test(t, func(t *testing.T) {
		api := localapi.NewTestWith(t, localapi.Options{Namespaces: []string{"fleet", "other"}})
		local, err := manager.New(api.RESTConfig(), manager.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewSecrets(local, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		w := &secrets{t: t, ctx: ctx, them: kubernetes.NewForConfigOrDie(api.RESTConfig()), fleet: &recorder{}, p: p}
		done := make(chan error, 2)
		go func() { done <- local.Run(ctx) }()
		go func() { done <- p.Run(ctx, w.fleet) }()
		w.wants("synced")
		test(w)
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// put writes a Secret.
func (w *secrets) put(s *corev1.Secret) {
	w.t.Helper()
	if _, err := w.them.CoreV1().Secrets(s.Namespace).Create(w.ctx, s, metav1.CreateOptions{}); err == nil {
		return
	}
	if _, err := w.them.CoreV1().Secrets(s.Namespace).Update(w.ctx, s, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *secrets) remove(name string) {
	w.t.Helper()
	if err := w.them.CoreV1().Secrets("fleet").Delete(w.ctx, name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// wants compares the fleet's records since the last call with want.
func (w *secrets) wants(want string) {
	w.t.Helper()
	time.Sleep(time.Second)
	synctest.Wait()
	if got := w.fleet.Log(); got != want {
		w.t.Errorf("the fleet heard %q, want %q", got, want)
	}
}

// wantsHealth checks that Health contains a text; "" means that it returns nil.
func (w *secrets) wantsHealth(want string) {
	w.t.Helper()
	switch err := w.p.Health(); {
	case (err == nil) != (want == ""), err != nil && !strings.Contains(err.Error(), want):
		w.t.Errorf("health is %v, want %q", err, want)
	}
}

func TestSecretsAreClusters(t *testing.T) {
	inSecrets(t, SecretOptions{Namespace: "fleet"}, func(w *secrets) {
		w.put(secretOf("eu", hostKubeconfig("1")))
		w.wants("join eu")
		if a, err := w.fleet.Cluster("eu"); err != nil || a.Config.Host != "https://1" || a.Labels["env"] != "test" {
			t.Errorf("the cluster is %+v, %v", a, err)
		}
		unlabelled, elsewhere := secretOf("us", hostKubeconfig("2")), secretOf("ap", hostKubeconfig("3"))
		unlabelled.Labels, elsewhere.Namespace = nil, "other"
		w.put(unlabelled)
		w.put(elsewhere)
		w.wants("")
		w.put(secretOf("us", hostKubeconfig("2")))
		w.wants("join us")
		w.put(secretOf("eu", hostKubeconfig("9")))
		w.wants("change eu: identity, host")
		w.put(unlabelled)
		w.wants("leave us")
		w.remove("eu")
		w.wants("leave eu")
		w.wantsHealth("")
	})
}

func TestMalformedSecretKeepsItsCluster(t *testing.T) {
	inSecrets(t, SecretOptions{Namespace: "fleet"}, func(w *secrets) {
		w.put(secretOf("eu", hostKubeconfig("1")))
		w.wants("join eu")
		w.put(secretOf("eu", "{{{"))
		w.put(secretOf("us", ""))
		w.wants("")
		w.wantsHealth("fleet/eu: kubeconfig: not a kubeconfig")
		w.wantsHealth("fleet/us: kubeconfig: it is empty")
		again := secretOf("eu", "{{{")
		again.Labels["more"] = "labels"
		w.put(again) // the same error
		w.wants("")
		events, err := w.them.CoreV1().Events("fleet").List(w.ctx,
			metav1.ListOptions{FieldSelector: "involvedObject.name=eu"})
		if err != nil || len(events.Items) != 1 || events.Items[0].Count != 1 ||
			events.Items[0].Reason != "InvalidKubeconfig" {
			t.Errorf("there are events %v, %v, want one of the fault", events, err)
		}
		w.put(secretOf("eu", hostKubeconfig("2")))
		w.wants("change eu: identity, host")
		w.remove("us")
		w.wants("")
		w.wantsHealth("")
		w.put(secretOf("eu", "{{{"))
		w.remove("eu")
		w.wants("leave eu")
		w.wantsHealth("")
	})
}

// A writer of Secrets must not be able to read the process's own token, or to make the process run a command.
func TestSecretsAreNotTrusted(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	reads := strings.Replace(hostKubeconfig("1"), "token: t", "tokenFile: "+token, 1)
	inSecrets(t, SecretOptions{Namespace: "fleet"}, func(w *secrets) {
		w.put(secretOf("eu", reads))
		w.wants("")
		w.wantsHealth("tokenFile names a file")
	})
	inSecrets(t, SecretOptions{Namespace: "fleet", Trusted: true}, func(w *secrets) {
		w.put(secretOf("eu", reads))
		w.wants("join eu")
		w.wantsHealth("")
	})
}

func TestOptions(t *testing.T) {
	o := SecretOptions{
		Namespace: "fleet", LabelSelector: "env in (test)", Key: "value",
		Name: func(s *corev1.Secret) string { return map[string]string{"x-eu": "eu", "us": "us"}[s.Name] },
	}
	inSecrets(t, o, func(w *secrets) {
		s := secretOf("x-eu", "")
		s.Data = map[string][]byte{"value": []byte(hostKubeconfig("1"))}
		w.put(s)
		w.put(secretOf("x-none", ""))
		w.put(secretOf("us", hostKubeconfig("1")))
		w.wants("join eu")
		w.wantsHealth(`fleet/us: its data has no key "value"`)
	})
	for _, o := range []SecretOptions{{}, {Namespace: "fleet", LabelSelector: "!!"}} {
		if _, err := NewSecrets(nil, o); err == nil {
			t.Errorf("%+v are taken", o)
		}
	}
}
