package providers

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

// retryInterval is how often rejected clusters are announced again. By then, another provider may have given up the
// name.
const retryInterval = 10 * time.Second

// roster announces to a fleet the clusters that a provider has found in places. A place is a file or an object:
//
//	it was read           found    its new clusters join, and those no longer in it leave
//	it cannot be read     broken   its clusters stay, and health reports the error
//	it does not exist     gone     its clusters leave
//
// If two places have a cluster of the same name, the name belongs to the place that used it first. The other place gets
// it when the first one gives it up.
//
// The roster outlives the provider's runs, so that the clusters of a place stay even if the next run cannot read the
// place. The zero value is empty.
//
// Concurrency: all methods may be called from any goroutine.
type roster struct {
	// mu is held during calls of the fleet, so that the fleet receives announcements in order. The fleet's methods do
	// not block.
	mu     sync.Mutex
	fleet  multicluster.Fleet
	places map[string]*place
	// holders maps the name of a cluster to the place that the name belongs to. Only the announcement of that place
	// goes to the fleet.
	holders map[string]string
}

// place is a file or an object in which clusters are found.
type place struct {
	clusters map[string]multicluster.Announcement
	// err is the error of reading the place. rejected has the errors of the fleet, by the name of the cluster.
	err      error
	rejected map[string]error
	// logged is the error that was last logged.
	logged string
	// seen means that the current run has found the place, whether or not it could be read.
	seen bool
}

// begin begins a run of the provider. It announces the clusters of earlier runs to the new fleet.
func (r *roster) begin(fleet multicluster.Fleet) {
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

// complete calls the fleet's Synced. If all is true, the run has found every place that exists, and complete first
// forgets the other places.
func (r *roster) complete(all bool) {
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
func (r *roster) placeLocked(where string) *place {
	p := r.places[where]
	if p == nil {
		p = &place{rejected: map[string]error{}}
		r.places[where] = p
	}
	p.seen = true
	return p
}

// unusable is a cluster that cannot be announced because of an error in its place.
type unusable struct {
	name string
	err  error
}

// found records the clusters in a place and announces what has changed. A cluster in bad stays as it was if the place
// had it before.
func (r *roster) found(ctx context.Context, where string, clusters []multicluster.Announcement, bad ...unusable) {
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
	for _, u := range bad {
		wrong = append(wrong, u.err)
		if a, known := before[u.name]; known {
			now[u.name] = a
		}
	}
	p.clusters, p.err = now, errors.Join(wrong...)
	r.announceChanges(before, now)
	r.report(ctx, where)
}

// broken records that a place cannot be read. It reports whether the error is new.
func (r *roster) broken(ctx context.Context, where string, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.placeLocked(where).err = err
	return r.report(ctx, where)
}

// gone records that a place does not exist any more.
func (r *roster) gone(where string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.goneLocked(where)
}

func (r *roster) goneLocked(where string) {
	if p := r.places[where]; p != nil {
		delete(r.places, where)
		r.announceChanges(p.clusters, nil)
	}
}

// placeNames returns the known places, sorted.
func (r *roster) placeNames() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.places))
}

// run announces rejected clusters again, once in each retryInterval, until ctx is done.
func (r *roster) run(ctx context.Context) {
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

func (r *roster) retry(ctx context.Context) {
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

// announceChanges announces to the fleet every cluster of before and now, or its departure.
func (r *roster) announceChanges(before, now map[string]multicluster.Announcement) {
	names := slices.Collect(maps.Keys(before))
	names = slices.AppendSeq(names, maps.Keys(now))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		r.announce(name)
	}
}

// announce announces the cluster of that name, or its departure, to the fleet. If the place that the name belongs to
// has no such cluster any more, the name goes to another place that has one.
func (r *roster) announce(name string) {
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

func (r *roster) has(where, name string) bool {
	p := r.places[where]
	if p == nil {
		return false
	}
	_, ok := p.clusters[name]
	return ok
}

// report logs when a place has a new error, and when the error is gone. It reports whether there is a new error.
func (r *roster) report(ctx context.Context, where string) bool {
	p, err := r.places[where], r.healthOf(where)
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

// healthOf returns the errors of a place and of its clusters.
func (r *roster) healthOf(where string) error {
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

func (r *roster) health() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var wrong []error
	for _, where := range slices.Sorted(maps.Keys(r.places)) {
		if err := r.healthOf(where); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", where, err))
		}
	}
	return errors.Join(wrong...)
}
