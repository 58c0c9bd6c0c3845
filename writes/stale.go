package writes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ErrStale reports that the cache does not show yet what this process wrote. Nothing is wrong: try again a little
// later. Package reconcile does so without counting a failure. Only reads with the context of a reconcile, or with a
// context from client.WithOwner, return it. The reads of map functions, validators, runnables and programs that run
// once return objects instead: see the package comment of client.
var ErrStale = errors.New("the cache is behind a write of this process")

// StaleError is the [ErrStale] of one read.
type StaleError struct {
	// Resource and Key name the object that was to be read. The name is empty for a list.
	Resource string
	Key      types.NamespacedName
	// Wanted is the resource version that the cache has to reach, and Seen the one that it has reached. Wanted is empty
	// while it is not known.
	Wanted, Seen string
	// RetryAfter is the shortest time after which the read can succeed; zero if it is not known.
	RetryAfter time.Duration
	// Cause is the error of the write whose effect is not known; nil if there is none.
	Cause error
}

func (e *StaleError) Error() string {
	what := e.Resource
	if e.Key.Name != "" || e.Key.Namespace != "" {
		what += " " + e.Key.String()
	}
	switch {
	case e.Cause != nil:
		return fmt.Sprintf("read %s: %v: the outcome of a write is unknown: %v", what,
			ErrStale, e.Cause)
	case e.Wanted != "":
		return fmt.Sprintf("read %s: %v: it is at resource version %q, not at %q", what, ErrStale, e.Seen, e.Wanted)
	}
	return fmt.Sprintf("read %s: %v", what, ErrStale)
}

// Is reports whether target is [ErrStale]. The cause is not unwrapped: it belongs to another operation.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// WaitForVersion waits until c has reached a version, for a read of key.
//
// Errors: a [StaleError] at the deadline; ctx's.
func (l *Resource) WaitForVersion(ctx context.Context, c Cache, key types.NamespacedName, version string,
	deadline time.Time,
) error {
	wait, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	switch {
	case c.WaitForVersion(wait, key.Namespace, version) == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &StaleError{Resource: l.Name.String(), Key: key, Wanted: version, Seen: c.Watermark(key.Namespace)}
}

// Wait waits until c has reached the entry, for a read of key. If the cache shows an earlier history of the server,
// Wait returns a [StaleError] at once.
//
// Errors: a [StaleError] at the deadline; ctx's.
func (e *Entry) Wait(ctx context.Context, c Cache, key types.NamespacedName, deadline time.Time) error {
	if c.History(e.Key.Namespace) < e.history {
		return &StaleError{Resource: e.resource.Name.String(), Key: key, Wanted: e.Version}
	}
	return e.resource.WaitForVersion(ctx, c, key, e.Version, deadline)
}

// Wait waits, for a read of key from c, until more is known about the write: the request is over, the server has shown
// the effect, or c shows it. The caller then asks the record again.
//
// Errors: a [StaleError] at the deadline, or at once if nothing can be known by then; ctx's.
func (w *Write) Wait(ctx context.Context, c Cache, key types.NamespacedName, deadline time.Time) error {
	o := w.state()
	stale := &StaleError{Resource: w.resource.Name.String(), Key: key, Cause: o.lost}
	switch {
	case o.listVersion != "":
		err := w.resource.WaitForVersion(ctx, c, w.Key(), o.listVersion, deadline)
		if behind := (*StaleError)(nil); errors.As(err, &behind) {
			behind.Key, behind.Cause = key, o.lost
		}
		return err
	case o.inDoubt && o.askAfter.After(deadline):
		stale.RetryAfter = time.Until(o.askAfter)
		return stale
	case o.inDoubt && !o.askAfter.After(time.Now()):
		if err := w.ask(ctx); err != nil {
			stale.Cause, stale.RetryAfter = errors.Join(o.lost, err), askAgainAfter
			return stale
		}
		return nil
	}
	wait, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	over, due := w.done, (<-chan time.Time)(nil)
	if o.inDoubt {
		over, due = nil, time.After(time.Until(o.askAfter))
	}
	select {
	case <-over:
		return nil
	case <-due:
		return nil
	case <-wait.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return stale
}

// Ready returns nil if every joined cache has reached all writes of owner and no such write is in doubt. It asks the
// server about those in doubt.
//
// Errors: a [StaleError].
func (r *Record) Ready(ctx context.Context, owner any) error {
	for _, l := range r.allResources() {
		if w := l.dueOf(owner); w != nil {
			_ = w.ask(ctx) // If it fails, the write stays in doubt, and the server is asked again later.
		}
	}
	return r.firstStale(owner, true)
}

// Seen is [Record.Ready] without the writes in doubt.
func (r *Record) Seen(owner any) error { return r.firstStale(owner, false) }

func (r *Record) firstStale(owner any, inDoubt bool) error {
	for _, l := range r.allResources() {
		if err := l.staleOf(owner, inDoubt); err != nil {
			return err
		}
	}
	return nil
}

// dueOf returns a write in doubt of owner that the server can be asked about now; nil if there is none.
func (l *Resource) dueOf(owner any) *Write {
	if l.busy.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.inDoubt {
		if o := w.state(); w.owner == owner && o.inDoubt && o.listVersion == "" && !o.askAfter.After(time.Now()) {
			return w
		}
	}
	return nil
}

// staleOf returns a [StaleError] for the first write of owner that some cache has not reached; nil if there is none. If
// inDoubt is set, it considers writes in doubt first.
func (l *Resource) staleOf(owner any, inDoubt bool) error {
	if l.busy.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.countLocked()
	l.pruneLocked()
	l.dropSettledLocked()
	for w := range l.inDoubt {
		if inDoubt && w.owner == owner {
			return &StaleError{Resource: l.Name.String(), Key: w.Key(), Cause: w.state().lost}
		}
	}
	for _, e := range l.order {
		if e.owner != owner {
			continue
		}
		if i := slices.IndexFunc(l.joined, func(c *joinedCache) bool { return !e.reachedBy(c) }); i >= 0 {
			seen := l.joined[i].Watermark(e.Key.Namespace)
			return &StaleError{Resource: l.Name.String(), Key: e.Key, Wanted: e.Version, Seen: seen}
		}
	}
	return nil
}
