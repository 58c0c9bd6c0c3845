package providers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/flyball-dev/flyball/multicluster"
)

// recorder is a fleet that connects to nothing and records the calls of a provider.
//
// Concurrency: all methods may be called from any goroutine.
type recorder struct {
	// OnSynced, if not nil, is called by Synced.
	OnSynced func()

	mu       sync.Mutex
	clusters map[string]multicluster.Announcement
	log      []string
	taken    map[string]bool
}

// Take makes Join reject these names, as if another provider had announced them. Each call replaces the names of the
// call before.
func (f *recorder) Take(names ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken = map[string]bool{}
	for _, n := range names {
		f.taken[n] = true
	}
}

// Join implements multicluster.Fleet. It records "join NAME", or "change NAME: …" if the announcement differs from the
// one before.
func (f *recorder) Join(a multicluster.Announcement) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.taken[a.Name] {
		return multicluster.ErrNameTaken
	}
	old, known := f.clusters[a.Name]
	if f.clusters == nil {
		f.clusters = map[string]multicluster.Announcement{}
	}
	f.clusters[a.Name] = a
	state := ""
	if a.NotReady != "" {
		state = " (" + a.NotReady + ")"
	}
	if !known {
		f.log = append(f.log, "join "+a.Name+state)
		return nil
	}
	var what []string
	if old.Identity != a.Identity {
		what = append(what, "identity")
	}
	if old.Config != nil && a.Config != nil && old.Config.Host != a.Config.Host {
		what = append(what, "host")
	}
	if !maps.Equal(old.Labels, a.Labels) {
		what = append(what, "labels")
	}
	if old.NotReady != a.NotReady {
		what = append(what, "readiness"+state)
	}
	if len(what) > 0 {
		f.log = append(f.log, "change "+a.Name+": "+strings.Join(what, ", "))
	}
	return nil
}

// Leave implements multicluster.Fleet. It records "leave NAME".
func (f *recorder) Leave(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.clusters[name]; known {
		delete(f.clusters, name)
		f.log = append(f.log, "leave "+name)
	}
}

// Synced implements multicluster.Fleet. It records "synced".
func (f *recorder) Synced() {
	f.mu.Lock()
	f.log = append(f.log, "synced")
	f.mu.Unlock()
	if f.OnSynced != nil {
		f.OnSynced()
	}
}

// Log returns the records since the last call, joined by "; ".
func (f *recorder) Log() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	log := strings.Join(f.log, "; ")
	f.log = nil
	return log
}

// Cluster returns the last announcement of a cluster.
func (f *recorder) Cluster(name string) (multicluster.Announcement, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, ok := f.clusters[name]
	if !ok {
		return a, fmt.Errorf("there is no cluster %q", name)
	}
	return a, nil
}

// Names returns the names of the clusters, sorted and joined by spaces.
func (f *recorder) Names() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(f.clusters)), " ")
}
