package pebble

import (
	"context"
	"sync"

	engine "github.com/cockroachdb/pebble/v2"

	"github.com/flyball-dev/flyball/localapi/storage"
)

// queue is where writers wait for their group.
type queue struct {
	mu sync.Mutex

	// waiting are the requests of the next group.
	waiting []*request

	// led means that some writer is the leader: it commits a group, or was told to. Invariant: while waiting is not
	// empty, led is true.
	led bool
}

// request is a write that waits.
type request struct {
	storage.Write
	remove bool // a delete: Write has only the key and the expected revision

	// revision and err are the answer.
	revision int64
	err      error

	// turn receives one value: true if the writer must lead the next group, which contains its request; false if the
	// request was answered. The previous leader sends it. Capacity 1, so that the leader never blocks.
	turn chan bool
}

// Put implements [storage.Storage].
func (s *Store) Put(_ context.Context, w storage.Write) (int64, error) {
	return s.write(&request{Write: w})
}

// Delete implements [storage.Storage].
func (s *Store) Delete(_ context.Context, key string, expected int64) (int64, error) {
	return s.write(&request{Write: storage.Write{Key: key, Expected: expected}, remove: true})
}

// write returns when r is on disk or rejected.
func (s *Store) write(r *request) (int64, error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.leave()
	if err := s.disk.failure(); err != nil {
		return 0, err
	}
	r.turn = make(chan bool, 1)
	if s.queue.join(r) || <-r.turn {
		s.commit(s.queue.take())
		s.queue.handOver()
	}
	return r.revision, r.err
}

// join adds r to the next group and reports whether its writer leads that group.
func (q *queue) join(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, r)
	leads := !q.led
	q.led = true
	return leads
}

// take returns the group to commit.
func (q *queue) take() []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	group := q.waiting
	q.waiting = nil
	return group
}

// handOver ends the caller's leadership.
func (q *queue) handOver() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.led = len(q.waiting) > 0; q.led {
		q.waiting[0].turn <- true
	}
}

// group is a set of requests that are decided and committed together.
type group struct {
	batch    *engine.Batch
	versions *engine.Iterator          // of the state on disk
	latest   map[string]storage.Record // what this group wrote, by key; revision 0: it deleted the key
	entries  []entry
	revision int64 // of the last write so far
}

// commit decides and writes a group. It answers every request in it except the leader's own, which is the first.
func (s *Store) commit(requests []*request) {
	err := s.commitGroup(requests)
	for i, r := range requests {
		if err != nil {
			r.revision, r.err = 0, err
		}
		if i > 0 {
			r.turn <- false
		}
	}
}

func (s *Store) commitGroup(requests []*request) (err error) {
	if err := s.disk.failure(); err != nil {
		return err // also for requests whose guard failed: the state that they should see may never reach the disk
	}
	g := &group{batch: s.db.NewBatch(), latest: map[string]storage.Record{}, revision: s.published.Load()}
	defer g.batch.Close()
	if g.versions, err = s.versions(); err != nil {
		return err
	}
	for _, r := range requests {
		r.revision, r.err = g.decide(r)
	}
	if err := g.versions.Close(); err != nil {
		return err
	}
	if g.batch.Empty() {
		return nil
	}
	if err := s.makeRoom(g.batch); err != nil {
		return err
	}
	if err := s.apply(g.batch, engine.Sync); err != nil {
		return err
	}
	s.publish(g.entries)
	return nil
}

// apply returns when the batch is on disk, or handed to it, depending on how. Errors: the disk's failure; a part of the
// batch may then be there.
func (s *Store) apply(batch *engine.Batch, how *engine.WriteOptions) error {
	if err := s.disk.guard(func() error { return batch.Commit(how) }); err != nil {
		return err
	}
	return s.disk.failure() // the engine has not heard of it
}

// decide answers one request, and writes it to the batch if its guard holds.
func (g *group) decide(r *request) (int64, error) {
	previous, err := g.current(r.Key)
	switch {
	case err != nil:
		return 0, err
	case r.remove && previous.Revision == storage.NoRevision:
		return 0, storage.ErrNotFound
	case previous.Revision != r.Expected:
		return 0, storage.ErrConflict
	}
	record := storage.Record{Key: r.Key, Value: r.Value, Revision: g.revision + 1, Tag: r.Tag}
	e := entry{
		key: r.Key, revision: record.Revision, previous: previous.Revision, deleted: r.remove,
		event: &storage.Event{Record: record, Deleted: r.remove, Previous: previous},
	}
	if err := g.add(e); err != nil {
		return 0, err
	}
	g.revision = record.Revision
	g.entries = append(g.entries, e)
	if r.remove {
		record = storage.Record{}
	}
	g.latest[r.Key] = record
	return g.revision, nil
}

// current returns the state of key that guards are checked against. Its revision is 0 if the key does not exist.
func (g *group) current(key string) (storage.Record, error) {
	if r, ok := g.latest[key]; ok {
		return r, nil
	}
	r, _, err := seekVersion(g.versions, versionsOf(key), key, g.revision)
	return r, err
}

// add writes a version and its log entry to the batch.
func (g *group) add(e entry) error {
	key := versionKey(e.key, e.revision)
	put := g.batch.SetDeferred(len(key), 1+len(e.event.Value))
	copy(put.Key, key)
	put.Value[0] = op(e.deleted)
	copy(put.Value[1:], e.event.Value)
	if err := put.Finish(); err != nil {
		return err
	}
	return g.batch.Set(logKey(e.revision), logValue(e), nil)
}

// publish makes what is on disk visible.
func (s *Store) publish(entries []entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, entries...)
	s.whole += len(entries)
	for _, e := range entries {
		s.wholeBytes += e.size()
	}
	for s.whole > s.recent || s.whole > 1 && s.wholeBytes > recentBytes {
		oldest := &s.log[len(s.log)-s.whole]
		s.whole--
		s.wholeBytes -= oldest.size()
		oldest.event = nil
	}
	s.published.Store(entries[len(entries)-1].revision)
	s.wakeLocked()
}

// wakeLocked wakes every watch that waits for the log to grow.
func (s *Store) wakeLocked() {
	if s.appended != nil {
		close(s.appended)
		s.appended = nil
	}
}
