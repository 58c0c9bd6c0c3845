package deployment

import (
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/flyball-dev/flyball/informer"
)

// ledger remembers, for each Deployment, the writes that the caches may not show yet. A sync that does not see what the
// last one wrote would write against outdated versions, and fail with a conflict; or create again what it created. It
// is put off instead: the event of the missing write wakes the Deployment.
//
// Differs: kube-controller-manager's Deployment controller runs into the conflict and retries. The objects go through
// the same states.
//
// Concurrency: for all workers; what belongs to one Deployment is used by one sync at a time.
type ledger struct {
	mu sync.Mutex
	// Invariant: a Deployment has a page only while something written for it may be unseen, or until its next sync.
	pages map[types.NamespacedName]*page
}

// page is what was written for one Deployment.
type page struct {
	uid        types.UID // of the Deployment: a page about another of its name is void
	deployment string    // the resource version of its last write; "" is none
	// replicaSets are the resource versions of the last writes of its ReplicaSets, by name.
	replicaSets map[string]string
	since       time.Time // of the last write
}

const (
	// recheck is how soon a sync that was put off looks again, should no event wake it. Usually one does within
	// milliseconds.
	recheck = time.Second
	// trustAfter is how long to wait for a write to show. A cache that does not show it by then never will, say because
	// the server was restored from a backup.
	trustAfter = 30 * time.Second
)

func newLedger() *ledger { return &ledger{pages: map[types.NamespacedName]*page{}} }

// record notes that obj, d itself or a ReplicaSet of it, has the version it has by our doing.
func (l *ledger) record(d *appsv1.Deployment, obj metav1.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := types.NamespacedName{Namespace: d.Namespace, Name: d.Name}
	p := l.pages[key]
	if p == nil || p.uid != d.UID {
		p = &page{uid: d.UID, replicaSets: map[string]string{}}
		l.pages[key] = p
	}
	p.since = time.Now()
	if obj.GetUID() == d.UID {
		p.deployment = obj.GetResourceVersion()
		return
	}
	p.replicaSets[obj.GetName()] = obj.GetResourceVersion()
}

// stale reports whether d or the cache of ReplicaSets is older than what was written last. Once it is not, what was
// written is forgotten.
func (l *ledger) stale(d *appsv1.Deployment, deployments informer.Informer[*appsv1.Deployment], replicaSets informer.Informer[*appsv1.ReplicaSet]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := types.NamespacedName{Namespace: d.Namespace, Name: d.Name}
	p := l.pages[key]
	if p == nil {
		return false
	}
	if p.uid == d.UID && time.Since(p.since) < trustAfter &&
		(unseen(p.deployment, d, deployments.ResourceVersion()) || p.replicaSetUnseen(d.Namespace, replicaSets)) {
		return true
	}
	delete(l.pages, key)
	return false
}

func (p *page) replicaSetUnseen(namespace string, cache informer.Informer[*appsv1.ReplicaSet]) bool {
	watermark := cache.ResourceVersion()
	for name, wrote := range p.replicaSets {
		rs, ok := cache.Get(namespace, name)
		if !ok {
			rs = &appsv1.ReplicaSet{} // not there yet, or gone already: the watermark tells
		}
		if unseen(wrote, rs, watermark) {
			return true
		}
	}
	return false
}

func (l *ledger) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pages, key)
}

// unseen reports that a write is newer than both the object in the cache and all that the cache was told. (The former
// may be ahead: the watermark of a cache over several namespaces is the lowest of theirs.) Versions that do not
// compare tell nothing, and nothing waits for them.
func unseen(wrote string, cached metav1.Object, watermark string) bool {
	return older(watermark, wrote) && (cached.GetResourceVersion() == "" || older(cached.GetResourceVersion(), wrote))
}

func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
