package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/providers"
)

// TestStory tells the story in virtual time.
func TestStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := tell(t.Context(), &out); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, "Shown in ") ||
			!strings.HasSuffix(last, "in 4 clusters, 12 times.") {
			t.Errorf("it ends with %q", last)
		}
	})
}

// inSite runs test with a fleet at work.
func inSite(t *testing.T, o options, test func(ctx context.Context, s *site)) {
	// client-go uses it for the servers of kubeconfigs that have no TLS.
	defer func(before http.RoundTripper) { http.DefaultTransport = before }(http.DefaultTransport)
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		s, err := newSite(ctx)
		must(t, err)
		http.DefaultTransport = s // Before the fleet starts, whose clusters read it.
		_, end := s.start(ctx, t, o)
		test(ctx, s)
		end()
		stop()
		must(t, s.close())
	})
}

// start runs a fleet until end is called.
func (s *site) start(ctx context.Context, t *testing.T, o options) (fleet *multicluster.Manager, end func()) {
	ctx, stop := context.WithCancel(ctx)
	fleet, err := newFleet(s.config(hubHost), o)
	must(t, err)
	done := make(chan error)
	go func() { done <- fleet.Local().Run(ctx) }()
	return fleet, func() {
		stop()
		must(t, <-done)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wants compares what the copy says, when all is done.
func wants(ctx context.Context, t *testing.T, s *site, host, want string) {
	t.Helper()
	time.Sleep(5 * time.Second)
	synctest.Wait()
	if got, err := s.text(ctx, host); err != nil || got != want {
		t.Errorf("in %s there is %q, %v; want %q", host, got, err, want)
	}
}

// A config map of that name which is no copy is neither overwritten nor deleted.
func TestWhatIsNoCopyIsLeftAlone(t *testing.T) {
	inSite(t, options{discovery: discovery()}, func(ctx context.Context, s *site) {
		must(t, s.add(ctx, "shop"))
		shop, err := s.in("shop")
		must(t, err)
		theirs := motd()
		theirs.Labels, theirs.Data = nil, map[string]string{"text": "theirs"}
		must(t, shop.Create(ctx, theirs))
		ours := motd()
		ours.Data = map[string]string{"text": "ours"}
		must(t, s.hub.Create(ctx, ours))
		wants(ctx, t, s, "shop", "theirs")
		must(t, s.hub.Delete(ctx, ours))
		wants(ctx, t, s, "shop", "theirs")
	})
}

// A copy waits for its namespace, and goes when the original is not to be copied any more.
func TestCopiesFollow(t *testing.T) {
	inSite(t, options{discovery: discovery()}, func(ctx context.Context, s *site) {
		must(t, s.add(ctx, "shop"))
		shop, err := s.in("shop")
		must(t, err)
		team := func() *corev1.Namespace { return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}} }
		original := motd()
		original.Namespace, original.Data = "team", map[string]string{"text": "hello"}
		must(t, s.hub.Create(ctx, team()))
		must(t, s.hub.Create(ctx, original))
		find := func() error {
			time.Sleep(5 * time.Second)
			synctest.Wait()
			return shop.Get(ctx, client.ObjectKeyFromObject(original), &corev1.ConfigMap{})
		}
		if err := find(); !apierrors.IsNotFound(err) {
			t.Errorf("without the namespace: %v", err)
		}
		must(t, shop.Create(ctx, team()))
		must(t, find())
		original.Labels = nil
		must(t, s.hub.Update(ctx, original))
		if err := find(); !apierrors.IsNotFound(err) {
			t.Errorf("without the label: %v", err)
		}
	})
}

// kubeconfigOf returns a kubeconfig with a context for each host.
func kubeconfigOf(hosts ...string) string {
	contexts, clusters := "", ""
	for _, host := range hosts {
		contexts += fmt.Sprintf("- {name: %s, context: {cluster: %[1]s}}\n", host)
		clusters += fmt.Sprintf("- {name: %s, cluster: {server: 'http://%[1]s'}}\n", host)
	}
	return fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: %s\ncontexts:\n%sclusters:\n%s",
		hosts[0], contexts, clusters)
}

// The clusters are the contexts of a kubeconfig, or Secrets with one. What is in a cluster that leaves is left alone.
func TestWhereClustersComeFrom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	must(t, os.WriteFile(file, []byte(kubeconfigOf("shop", "blog")), 0o600))
	secretOf := func(host string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: host, Labels: map[string]string{providers.DefaultSecretLabel: "true"},
			},
			Data: map[string][]byte{providers.DefaultSecretKey: []byte(kubeconfigOf(host))},
		}
	}
	test := func(ctx context.Context, t *testing.T, s *site) {
		must(t, errors.Join(s.serve("shop"), s.serve("blog"), s.hub.Create(ctx, secretOf("shop")),
			s.hub.Create(ctx, secretOf("blog"))))
		original := motd()
		original.Data = map[string]string{"text": "one"}
		must(t, s.hub.Create(ctx, original))
		wants(ctx, t, s, "shop", "one")
		wants(ctx, t, s, "blog", "one")
		must(t, os.WriteFile(file, []byte(kubeconfigOf("shop")), 0o600))
		must(t, s.hub.Delete(ctx, secretOf("blog")))
		time.Sleep(5 * time.Second)
		original.Data["text"] = "two"
		must(t, s.hub.Update(ctx, original))
		wants(ctx, t, s, "shop", "two")
		wants(ctx, t, s, "blog", "one")
	}
	for name, o := range map[string]options{"kubeconfig": {kubeconfigs: file}, "secrets": {secrets: "default"}} {
		t.Run(name, func(t *testing.T) {
			inSite(t, o, func(ctx context.Context, s *site) { test(ctx, t, s) })
		})
		must(t, os.WriteFile(file, []byte(kubeconfigOf("shop", "blog")), 0o600))
	}
}

// Two replicas share the clusters: each is served by one of them. When one replica stops, the other serves all.
func TestReplicasShareTheClusters(t *testing.T) {
	hosts := []string{"shop", "blog", "lab", "depot", "mail", "wiki"}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		s, err := newSite(ctx)
		must(t, err)
		for _, host := range hosts {
			must(t, s.add(ctx, host))
		}
		original := motd()
		original.Data = map[string]string{"text": "one"}
		must(t, s.hub.Create(ctx, original))
		a, endA := s.start(ctx, t, options{discovery: discovery(), replica: "a"})
		b, endB := s.start(ctx, t, options{discovery: discovery(), replica: "b"})
		for _, host := range hosts {
			wants(ctx, t, s, host, "one")
		}
		live := func(fleet *multicluster.Manager) (names []string) {
			for _, c := range fleet.Clusters() {
				if c.State == multicluster.Live {
					names = append(names, c.Name)
				}
			}
			return names
		}
		ofA, ofB := live(a), live(b)
		both := slices.Sorted(slices.Values(slices.Concat(ofA, ofB)))
		if len(ofA) == 0 || len(ofB) == 0 || !slices.Equal(both, slices.Sorted(slices.Values(hosts))) {
			t.Errorf("a serves %v, b serves %v", ofA, ofB)
		}
		endA()
		original.Data["text"] = "two"
		must(t, s.hub.Update(ctx, original))
		for _, host := range hosts {
			wants(ctx, t, s, host, "two")
		}
		endB()
		stop()
		must(t, s.close())
	})
}

func TestArguments(t *testing.T) {
	err := run(t.Context(), []string{"nonsense"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `"nonsense"`) {
		t.Error(err)
	}
}
