package replicaset

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// trustAfter is how long a sync waits for the cache to show what an earlier one wrote. A cache that does not by then never
// will, say because the server lost the write, and what it does show has to be acted on.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/controller_utils.go, ExpectationsTimeout
const trustAfter = 5 * time.Minute

// ledger remembers, for each ReplicaSet, which of our own writes the caches may not show yet.
//
// A controller that counts replicas in a cache and creates what is missing creates twice when it counts again before the cache
// has caught up. The ledger answers the two questions that prevent this:
//
//   - stale: do the caches lag behind the newest resource version we got for a write of this set? Then nothing
//     about it can be believed, and its sync is put off.
//   - settled: does the pod cache show every pod we created, and not show as active any that we deleted? Until then pods
//     are not counted for creating or deleting. This holds also where resource versions tell nothing: a server may
//     give ones that do not compare, and a deletion does not give us any.
//
// Both answers come from the cache, not from counting events: an event that was missed, merged with another, or
// delivered twice changes nothing.
//
// Concurrency: the map may be used by all workers. A record belongs to whoever reconciles its key, which is one at a time.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/util/consistency/consistency.go, and the expectations of
// pkg/controller/controller_utils.go
type ledger struct {
	mu sync.Mutex
	// Invariant: a key is present only while something it wrote may be unseen, or until its next sync.
	records map[types.NamespacedName]*record
}

// record is what we wrote for one ReplicaSet.
type record struct {
	// uid is the set's. A record of another set of the same name is void.
	uid types.UID
	// pods and set are the newest versions we got for writes of the set's pods and of its own status.
	pods, set version
	// created and deleted are the pods the cache has to show, or has to show no longer as active.
	created, deleted []podWrite
	// refused says that the namespace is going away. No cache will show what was not created, and trying again is of
	// no use: this waits for trustAfter.
	refused bool
	// since is when the last pod was created or deleted.
	since time.Time
}

// version is the newest resource version written to one resource.
type version struct {
	wrote string // "" while nothing was written
	// read is the watermark of the cache when it was recorded. Should the watermark ever be lower, then the server's
	// history went back, as after restoring a backup, and wrote means nothing any more.
	read string
}

// podWrite is a pod that we created or deleted.
type podWrite struct {
	name string
	uid  types.UID
}

// watermarked is a cache that knows how far it has come. [informer.Informer] is one.
type watermarked interface{ ResourceVersion() string }

// podCache is the pod informer as far as the ledger needs it.
type podCache interface {
	watermarked
	Get(namespace, name string) (*corev1.Pod, bool)
}

func newLedger() *ledger {
	return &ledger{records: make(map[types.NamespacedName]*record)}
}

// find returns the record of set, or nil.
func (l *ledger) find(set metav1.Object) *record {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.records[keyOf(set)]; r != nil && r.uid == set.GetUID() {
		return r
	}
	return nil
}

// open returns the record of set, a new one if there is none.
func (l *ledger) open(set metav1.Object) *record {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.records[keyOf(set)]
	if r == nil || r.uid != set.GetUID() {
		r = &record{uid: set.GetUID()}
		l.records[keyOf(set)] = r
	}
	return r
}

// forget drops the record of the set of this name.
func (l *ledger) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.records, key)
}

func (l *ledger) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.records)
}

func keyOf(set metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: set.GetNamespace(), Name: set.GetName()}
}

// wrotePod notes that a pod of the set has the given resource version by our doing.
func (r *record) wrotePod(rv string, cache watermarked) { r.pods.raise(rv, cache.ResourceVersion()) }

// wroteSet notes the same of the set itself.
func (r *record) wroteSet(rv string, cache watermarked) { r.set.raise(rv, cache.ResourceVersion()) }

// createdPods notes pods the cache has to show before pods are counted again.
func (r *record) createdPods(list []*corev1.Pod, cache watermarked, now time.Time) {
	for _, pod := range list {
		r.created = append(r.created, podWrite{pod.Name, pod.UID})
		r.wrotePod(pod.ResourceVersion, cache)
	}
	r.since = now
}

// deletedPods notes pods the cache has to stop showing as active before pods are counted again.
func (r *record) deletedPods(list []*corev1.Pod, now time.Time) {
	for _, pod := range list {
		r.deleted = append(r.deleted, podWrite{pod.Name, pod.UID})
	}
	r.since = now
}

// refusedPods notes that no pod can be created in the namespace any more.
func (r *record) refusedPods(now time.Time) { r.refused, r.since = true, now }

// stale says which of the two caches lags behind what was written, if one does.
func (r *record) stale(podCache, setCache watermarked) (resource string, wrote, read string, stale bool) {
	if read = podCache.ResourceVersion(); r.pods.ahead(read) {
		return "pods", r.pods.wrote, read, true
	}
	if read = setCache.ResourceVersion(); r.set.ahead(read) {
		return "replicasets", r.set.wrote, read, true
	}
	return "", "", "", false
}

// settled says whether the cache shows all pods that were created and deleted, or has had its time. To be asked only
// when the caches are not stale: a created pod whose version the cache has reached and which it does not hold has
// come and gone.
func (r *record) settled(namespace string, cache podCache, now time.Time) bool {
	if now.Sub(r.since) > trustAfter {
		r.created, r.deleted, r.refused = nil, nil, false
		return true
	}
	if r.pods.reached(cache.ResourceVersion()) {
		r.created = nil
	}
	r.created = slices.DeleteFunc(r.created, func(w podWrite) bool {
		pod, ok := cache.Get(namespace, w.name)
		return ok && pod.UID == w.uid
	})
	r.deleted = slices.DeleteFunc(r.deleted, func(w podWrite) bool {
		pod, ok := cache.Get(namespace, w.name)
		return !ok || pod.UID != w.uid || pod.DeletionTimestamp != nil
	})
	return len(r.created) == 0 && len(r.deleted) == 0 && !r.refused
}

// raise records rv, written while the cache had come to watermark, unless a newer one is on record.
func (v *version) raise(rv, watermark string) {
	if order, err := resourceversion.CompareResourceVersion(v.wrote, rv); err == nil && order >= 0 {
		return
	}
	v.wrote, v.read = rv, watermark
}

// ahead tells that a cache at watermark certainly does not show the write. Versions that do not compare tell nothing, and
// nothing is held up because of them.
func (v *version) ahead(watermark string) bool {
	order, err := resourceversion.CompareResourceVersion(v.wrote, watermark)
	if err != nil || order <= 0 {
		return false
	}
	if back, err := resourceversion.CompareResourceVersion(watermark, v.read); err == nil && back < 0 {
		return false
	}
	return true
}

// reached tells that a cache at watermark certainly shows the write, or what came after it.
func (v *version) reached(watermark string) bool {
	order, err := resourceversion.CompareResourceVersion(v.wrote, watermark)
	return err == nil && order <= 0
}
