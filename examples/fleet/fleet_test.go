package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
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
func inSite(t *testing.T, test func(ctx context.Context, s *site)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		s, err := newSite(ctx)
		must(t, err)
		fleet, err := newFleet(s.config(hubHost), discovery())
		must(t, err)
		done := make(chan error)
		go func() { done <- fleet.Local().Run(ctx) }()
		test(ctx, s)
		stop()
		must(t, <-done)
		must(t, s.close())
	})
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
	inSite(t, func(ctx context.Context, s *site) {
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
	inSite(t, func(ctx context.Context, s *site) {
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

func TestArguments(t *testing.T) {
	if err := run(t.Context(), []string{"nonsense"}); err == nil || !strings.Contains(err.Error(), `"nonsense"`) {
		t.Error(err)
	}
}
