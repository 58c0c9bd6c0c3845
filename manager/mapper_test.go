package manager

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	discoveryfake "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
)

// A CustomResourceDefinition that is created while the process runs is found. While it does not exist, requests for its
// kind do not flood the server.
func TestMapperFindsNewKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &clienttesting.Fake{Resources: []*metav1.APIResourceList{{
			GroupVersion: "v1",
			APIResources: []metav1.APIResource{
				{Name: "nodes", Kind: "Node"},
				{Name: "pods", Kind: "Pod", Namespaced: true},
			},
		}}}
		down := true
		fake.PrependReactor("get", "group", func(clienttesting.Action) (bool, runtime.Object, error) {
			if down {
				return true, nil, errors.New("no route to host")
			}
			return false, nil, nil
		})
		m := &reloadingMapper{discovery: &discoveryfake.FakeDiscovery{Fake: fake}}
		isNamespaced := func(kind schema.GroupKind) (bool, error) {
			mapping, err := m.RESTMapping(kind)
			return err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace, err
		}
		web := schema.GroupKind{Group: "demo.io", Kind: "Web"}
		if _, err := isNamespaced(web); err == nil || meta.IsNoMatchError(err) {
			t.Errorf("while the server is away: %v", err)
		}
		down = false
		for kind, want := range map[string]bool{"Node": false, "Pod": true} {
			if got, err := isNamespaced(schema.GroupKind{Kind: kind}); err != nil || got != want {
				t.Errorf("%s: namespaced %v, %v", kind, got, err)
			}
		}
		for range 100 {
			if _, err := isNamespaced(web); !meta.IsNoMatchError(err) {
				t.Fatalf("unknown kind: %v", err)
			}
		}
		asked := len(fake.Actions())
		if asked > 6 {
			t.Errorf("the server was asked %d times", asked)
		}
		fake.Resources = append(fake.Resources, &metav1.APIResourceList{
			GroupVersion: "demo.io/v1",
			APIResources: []metav1.APIResource{{Name: "webs", Kind: "Web", Namespaced: true}},
		})
		time.Sleep(reloadInterval)
		if got, err := isNamespaced(web); err != nil || !got {
			t.Errorf("new kind: %v, %v", got, err)
		}
		gvr, err := m.ResourceFor(schema.GroupVersionResource{Group: "demo.io", Resource: "webs"})
		if err != nil || gvr.Version != "v1" {
			t.Errorf("resource %v, %v", gvr, err)
		}
	})
}

// slowDiscovery takes a second for each read, and fails if down is set.
type slowDiscovery struct {
	discovery.DiscoveryInterface
	down bool

	mu    sync.Mutex
	reads int
}

func (d *slowDiscovery) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	d.mu.Lock()
	d.reads++
	d.mu.Unlock()
	time.Sleep(time.Second)
	if d.down {
		return nil, nil, errors.New("no route to host")
	}
	return d.DiscoveryInterface.ServerGroupsAndResources()
}

// Callers at the same time share one read of the server's discovery. If a read fails, the kinds that are known already
// stay known.
func TestMapperReadsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowDiscovery{DiscoveryInterface: &discoveryfake.FakeDiscovery{Fake: &clienttesting.Fake{
			Resources: []*metav1.APIResourceList{{
				GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod", Namespaced: true}},
			}},
		}}}
		m := &reloadingMapper{discovery: slow}
		pod, web := schema.GroupKind{Kind: "Pod"}, schema.GroupKind{Group: "demo.io", Kind: "Web"}
		for reads, kind := range []schema.GroupKind{pod, web} {
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() {
					_, err := m.RESTMapping(kind)
					if kind == pod && err != nil || kind == web && !meta.IsNoMatchError(err) {
						t.Errorf("%s: %v", kind, err)
					}
				})
			}
			if all.Wait(); slow.reads != reads+1 {
				t.Errorf("%s: the server's discovery was read %d times, want %d", kind, slow.reads, reads+1)
			}
			time.Sleep(reloadInterval)
		}
		slow.down = true
		if _, err := m.RESTMapping(web); err == nil || meta.IsNoMatchError(err) {
			t.Errorf("an unknown kind while the server is away: %v", err)
		}
		if _, err := m.RESTMapping(pod); err != nil {
			t.Errorf("a known kind while the server is away: %v", err)
		}
	})
}
