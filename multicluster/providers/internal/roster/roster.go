// Package roster keeps track of the clusters of a provider that finds them in several places: files, or objects. For
// each place:
//
//	it is read ─▶ Found           ─▶ its new clusters join, and those no longer in it leave
//	it cannot be read ─▶ Broken   ─▶ its clusters stay, and Health reports the error
//	it is gone ─▶ Gone            ─▶ its clusters leave
//
// If two places use the same name, it belongs to the first one. The other one gets it when the first one gives it up.
package roster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/multicluster"
)

// retryInterval is how often rejected clusters are announced again: another provider may have given up the name.
const retryInterval = 10 * time.Second

// Roster announces the clusters that a provider has found. It outlives the provider's runs: a place that cannot be read
// in one run may have been read in the one before. The zero value is empty.
//
// Concurrency: all methods may be called from any goroutine.
type Roster struct {
	// mu is held during calls of the fleet, so that they come in the order of the provider's findings. The fleet's
	// methods do not wait.
	mu     sync.Mutex
	fleet  multicluster.Fleet
	places map[string]*place
	// holders are the places whose announcements went to the fleet, by the name of the cluster.
	holders map[string]string
}

// place is where clusters are found.
type place struct {
	clusters map[string]multicluster.Announcement
	// err is the error of the place itself. rejected is why the fleet rejected a cluster, by its name.
	err      error
	rejected map[string]error
	// logged is the error that was last logged.
	logged string
	// seen reports whether the place was read, with or without success, since the run began.
	seen bool
}

// Begin begins a run: it announces all known clusters to the fleet. [Roster.Complete] follows when all places were
// read.
func (r *Roster) Begin(fleet multicluster.Fleet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fleet = fleet
	if r.places == nil {
		r.places, r.holders = map[string]*place{}, map[string]string{}
	}
	for _, p := range r.places {
		p.seen = false
	}
	for _, name := range slices.Sorted(maps.Keys(r.holders)) {
		r.announce(name)
	}
}

// Complete tells the fleet that all clusters are announced. If all is set, every existing place was read since the run
// began, and Complete forgets the other places.
func (r *Roster) Complete(all bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, where := range slices.Sorted(maps.Keys(r.places)) {
		if all && !r.places[where].seen {
			r.goneLocked(where)
		}
	}
	r.fleet.Synced()
}

// placeLocked returns the place of that name and marks it as seen.
func (r *Roster) placeLocked(where string) *place {
	p := r.places[where]
	if p == nil {
		p = &place{rejected: map[string]error{}}
		r.places[where] = p
	}
	p.seen = true
	return p
}

// Unusable is a cluster of which only the name is known.
type Unusable struct {
	Name string
	Err  error
}

// Found reports the clusters in a place. Unusable clusters stay as they were, if they were known.
func (r *Roster) Found(ctx context.Context, where string, clusters []multicluster.Announcement, unusable ...Unusable) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.placeLocked(where)
	before, now := p.clusters, map[string]multicluster.Announcement{}
	var wrong []error
	for _, a := range clusters {
		if _, twice := now[a.Name]; twice {
			wrong = append(wrong, fmt.Errorf("two clusters are named %q", a.Name))
			continue
		}
		now[a.Name] = a
	}
	for _, u := range unusable {
		wrong = append(wrong, u.Err)
		if a, known := before[u.Name]; known {
			now[u.Name] = a
		}
	}
	p.clusters, p.err = now, errors.Join(wrong...)
	r.announceChanges(before, now)
	r.report(ctx, where)
}

// Broken reports that a place cannot be read. It returns whether the error is new.
func (r *Roster) Broken(ctx context.Context, where string, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.placeLocked(where).err = err
	return r.report(ctx, where)
}

// Gone reports that a place does not exist any more.
func (r *Roster) Gone(where string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.goneLocked(where)
}

func (r *Roster) goneLocked(where string) {
	if p := r.places[where]; p != nil {
		delete(r.places, where)
		r.announceChanges(p.clusters, nil)
	}
}

// Places returns the known places, sorted.
func (r *Roster) Places() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.places))
}

// Run announces rejected clusters again from time to time, until ctx is done.
func (r *Roster) Run(ctx context.Context) {
	tick := time.NewTicker(retryInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.retry(ctx)
		}
	}
}

func (r *Roster) retry(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for where, p := range r.places {
		if len(p.rejected) == 0 {
			continue
		}
		for name := range maps.Clone(p.rejected) {
			r.announce(name)
		}
		r.report(ctx, where)
	}
}

// announceChanges announces these names, or their departure, to the fleet.
func (r *Roster) announceChanges(some, more map[string]multicluster.Announcement) {
	names := slices.Collect(maps.Keys(some))
	names = slices.AppendSeq(names, maps.Keys(more))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		r.announce(name)
	}
}

func (r *Roster) announce(name string) {
	where, held := r.holders[name]
	if held && !r.has(where, name) {
		if p := r.places[where]; p != nil {
			delete(p.rejected, name)
		}
		where = ""
	}
	for _, other := range slices.Sorted(maps.Keys(r.places)) {
		if where == "" && r.has(other, name) {
			where = other
		}
	}
	if where == "" {
		if held {
			delete(r.holders, name)
			r.fleet.Leave(name)
		}
		return
	}
	r.holders[name] = where
	p := r.places[where]
	if err := r.fleet.Join(p.clusters[name]); err != nil {
		p.rejected[name] = fmt.Errorf("cluster %q: %w", name, err)
	} else {
		delete(p.rejected, name)
	}
}

func (r *Roster) has(where, name string) bool {
	p := r.places[where]
	if p == nil {
		return false
	}
	_, ok := p.clusters[name]
	return ok
}

// report logs a new error of a place, and the end of an error.
func (r *Roster) report(ctx context.Context, where string) bool {
	p, err := r.places[where], r.health(where)
	text := ""
	if err != nil {
		text = err.Error()
	}
	if p.logged == text {
		return false
	}
	p.logged = text
	logger := klog.FromContext(ctx)
	if err != nil {
		logger.Error(err, "Cannot read all clusters of a source", "source", where, "kept", len(p.clusters))
		return true
	}
	logger.Info("All clusters of a source can be read again", "source", where)
	return false
}

// health returns the error of a place.
func (r *Roster) health(where string) error {
	p := r.places[where]
	wrong := []error{p.err}
	for _, name := range slices.Sorted(maps.Keys(p.rejected)) {
		wrong = append(wrong, p.rejected[name])
	}
	for _, name := range slices.Sorted(maps.Keys(p.clusters)) {
		if holder := r.holders[name]; holder != where {
			wrong = append(wrong, fmt.Errorf("cluster %q: the name is taken by a cluster of %s", name, holder))
		}
	}
	return errors.Join(wrong...)
}

// Health returns the errors of all places.
func (r *Roster) Health() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var wrong []error
	for _, where := range slices.Sorted(maps.Keys(r.places)) {
		if err := r.health(where); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", where, err))
		}
	}
	return errors.Join(wrong...)
}
