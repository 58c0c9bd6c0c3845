package patterns

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

const page = "patterns"

// A bench is a server on which a controller runs, and what happened.
type bench struct {
	*localapi.Test
	client.Client // the user's
	t             *testing.T
	began         time.Time

	mu   sync.Mutex
	text strings.Builder
}

// newBench returns a server with the type Site and these objects.
func newBench(t *testing.T, objects ...runtime.Object) *bench {
	t.Helper()
	objects = append([]runtime.Object{definition()}, objects...)
	b := &bench{Test: localapi.NewTest(t, objects...), t: t, began: time.Now()}
	c, err := client.New(b.RESTConfig(), client.Options{Scheme: scheme()})
	if err != nil {
		t.Fatal(err)
	}
	b.Client = c
	return b
}

func (b *bench) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(&b.text, "%5v  %s\n", time.Since(b.began).Truncate(10*time.Millisecond), fmt.Sprintf(format, args...))
}

func (b *bench) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// run runs a manager with the controller that build adds. The function that it returns ends it.
func (b *bench) run(build func(m ctrl.Manager) error) (stop func()) {
	b.t.Helper()
	m, err := ctrl.NewManager(b.RESTConfig(), ctrl.Options{Scheme: scheme()})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := build(m); err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(klog.NewContext(b.t.Context(), klog.Logger{}))
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	}
}

// forSites builds a controller of sites.
func forSites(r func(c client.Client) ctrl.Reconciler) func(m ctrl.Manager) error {
	return func(m ctrl.Manager) error {
		return ctrl.NewControllerManagedBy(m).For(&Site{}).Complete(r(m.GetClient()))
	}
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func newSite() *Site {
	return &Site{
		TypeMeta:   metav1.TypeMeta{APIVersion: groupVersion.String(), Kind: "Site"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"},
		Spec:       SiteSpec{Domain: "shop.example.com", Text: "hello"},
	}
}

// site reads the site.
func (b *bench) site() *Site {
	b.t.Helper()
	var site Site
	b.must(b.Get(b.t.Context(), client.ObjectKey{Namespace: "default", Name: "shop"}, &site, client.Live))
	return &site
}

// both runs a test with two controllers, and returns what happened with each.
func both(t *testing.T, titles [2]string, test func(t *testing.T, second bool) *bench) string {
	t.Helper()
	var text string
	for i, title := range titles {
		synctest.Test(t, func(t *testing.T) {
			text += fmt.Sprintf("%s\n%s\n", title, test(t, i == 1))
		})
	}
	return text
}
