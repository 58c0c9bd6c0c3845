package pebble

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	engine "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/localapi/storage"
)

// Options configure a [Store]. The zero value works.
type Options struct {
	// CacheSize bounds the memory for blocks read from disk. Units: bytes. 0 is 8 MiB.
	CacheSize int64

	// RecentWrites is how many of the last writes are kept in memory for watches, whole and with their tags: at most 64
	// MiB of them. 0 is 4096.
	RecentWrites int

	// memTableSize is how much the engine collects before it writes a table. Units: bytes. 0 is its default, 4 MiB.
	memTableSize uint64

	// fs is the file system of the store. Nil is the operating system's.
	fs vfs.FS
}

const (
	defaultCacheSize    = 8 << 20
	defaultRecentWrites = 4096
	recentBytes         = 64 << 20
	ownerFile           = "OWNER"
)

func (o Options) withDefaults() Options {
	o.CacheSize = cmp.Or(o.CacheSize, defaultCacheSize)
	o.RecentWrites = cmp.Or(o.RecentWrites, defaultRecentWrites)
	if o.fs == nil {
		o.fs = private{vfs.Default}
	}
	return o
}

// ErrInUse means that another process, or this one, has the store open. The error's text names the process.
var ErrInUse = errors.New("the store is in use")

// inUseError is an [ErrInUse].
type inUseError struct {
	Dir string
	// Owner is the id of the process, or 0 if it is not known.
	Owner int
}

// Is implements the interface of errors.Is.
func (e *inUseError) Is(target error) bool { return target == ErrInUse }

func (e *inUseError) Error() string {
	if e.Owner == 0 {
		return fmt.Sprintf("the store in %s is in use: one process at a time can have it open", e.Dir)
	}
	return fmt.Sprintf("the store in %s is in use by process %d: one process at a time can have it open", e.Dir,
		e.Owner)
}

// Store is a [storage.Storage] on disk.
type Store struct {
	db     *engine.DB
	disk   *disk
	lock   *engine.Lock
	recent int

	// life is held for reading by every user of db, and for writing by Close.
	life   sync.RWMutex
	closed atomic.Bool

	// queue is where writers wait for their group; see commit.go.
	queue queue

	// progress and unchecked belong to the leader; see compact.go. unchecked is how much was written since the last
	// check.
	progress  progress
	unchecked int

	// published is the revision of the last write on disk. It rises under mu and may be read without it.
	published atomic.Int64

	mu sync.RWMutex

	// log holds the writes after the compacted revision, in order. Invariant: log[i].revision == base + 1 + i, and the
	// last one's is published. Only the last whole entries have their event, and those have wholeBytes together.
	log        []entry
	whole      int
	wholeBytes int
	compacted  int64

	// appended is closed, and replaced on demand, when the log grows or the store closes. The writer closes it; watches
	// wait for it. It is nil while nobody waits.
	appended chan struct{}

	// compacting is held by Compact, so that only one call walks the log at a time.
	compacting sync.Mutex
}

// entry is a write in the log.
type entry struct {
	key                string
	revision, previous int64
	deleted            bool
	event              *storage.Event // nil: must be read from disk
}

// size returns the bytes of the entry's event, which it has.
func (e *entry) size() int { return len(e.event.Value) + len(e.event.Previous.Value) }

var _ storage.Storage = (*Store)(nil)

// Open opens the store in dir, and creates it if it does not exist. The engine logs to the logger of ctx; nothing else
// of ctx outlives the call. The caller closes the store.
//
// Errors: [ErrInUse] while the store is open elsewhere; [ErrDamaged]; [ErrFailed] if the disk cannot be written;
// another error if the directory holds something else. For later failures, see [Store.Failed].
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	o = o.withDefaults()
	d := newDisk(o.fs, dir)
	s, err := open(ctx, d, o)
	if err = d.explain(err); err != nil {
		return nil, err
	}
	return s, nil
}

func open(ctx context.Context, d *disk, o Options) (*Store, error) {
	if err := o.fs.MkdirAll(d.dir, 0o700); err != nil {
		return nil, err
	}
	if err := refuseForeign(o.fs, d.dir); err != nil {
		return nil, err
	}
	lock, err := engine.LockDirectory(d.dir, o.fs)
	if err != nil {
		return nil, lockError(o.fs, d.dir, err)
	}
	err = d.verify()
	if p, ok := o.fs.(private); ok {
		err = errors.Join(p.restrict(ctx, d.dir), err)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s := &Store{disk: d, lock: lock, recent: o.RecentWrites}
	if err := s.start(ctx, o); err != nil {
		if failure := d.failure(); failure != nil {
			err = failure // more precise than the engine's error
		}
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

// start opens the engine. If it fails, nothing is open.
func (s *Store) start(ctx context.Context, o Options) (err error) {
	cache := engine.NewCache(o.CacheSize)
	defer cache.Unref()
	log := logger{klog.FromContext(ctx), s.disk}
	err = s.disk.guard(func() (err error) {
		s.db, err = engine.Open(s.disk.dir, &engine.Options{
			FS: s.disk, Lock: s.lock, Cache: cache, Logger: log, EventListener: s.listener(log),
			FormatMajorVersion:          engine.FormatWALSyncChunks,
			MemTableSize:                o.memTableSize,
			MemTableStopWritesThreshold: noLimit, L0StopWritesThreshold: noLimit,
		})
		return err
	})
	if err != nil {
		return err
	}
	s.disk.opened.Store(true)
	if err := errors.Join(s.load(), writeOwner(s.disk, s.disk.dir)); err != nil {
		return errors.Join(err, s.stop())
	}
	if err := s.disk.failure(); err != nil { // the engine has not heard of it
		return errors.Join(err, s.stop())
	}
	return nil
}

// listener returns the callbacks for what the engine does in the background.
func (s *Store) listener(log logger) *engine.EventListener {
	return &engine.EventListener{
		FlushEnd:      func(engine.FlushInfo) { s.progress.tell() },
		CompactionEnd: func(engine.CompactionInfo) { s.progress.tell() },
		DataCorruption: func(info engine.DataCorruptionInfo) {
			s.disk.freeze(&damagedError{Dir: s.disk.dir, File: filepath.Base(info.Path), Err: info.Details})
		},
		BackgroundError: func(err error) {
			if s.disk.failure() == nil { // else the reason is known
				log.Errorf("background error: %v", err)
			}
			s.disk.freeze(s.disk.failureOf(err))
		},
	}
}

// stop closes the engine, unless it is broken and must not be called any more, and the files that it leaves open.
func (s *Store) stop() error {
	defer s.disk.closeFiles()
	close(s.disk.closing)
	if s.disk.broken.Load() {
		return nil
	}
	return s.db.Close()
}

// refuseForeign returns an error for a directory that has other programs' files, which the engine would mix with its
// own.
func refuseForeign(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == ownerFile || name == "LOCK" || strings.HasPrefix(name, "MANIFEST-") {
			return nil
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("the directory is not empty and holds no store, but %q", names[0])
	}
	return nil
}

// lockError distinguishes a lock that another process holds from a directory that cannot be written.
func lockError(fs vfs.FS, dir string, err error) error {
	if path := (*os.PathError)(nil); errors.As(err, &path) {
		return err
	}
	inUse := &inUseError{Dir: dir}
	if f, openErr := fs.Open(fs.PathJoin(dir, ownerFile)); openErr == nil {
		text := make([]byte, 20)
		n, _ := f.Read(text)
		inUse.Owner, _ = strconv.Atoi(strings.TrimSpace(string(text[:n])))
		_ = f.Close()
	}
	return inUse
}

// writeOwner records which process has the store, for the error that others get. It is only a hint: the lock is what
// counts.
func writeOwner(fs vfs.FS, dir string) error {
	f, err := fs.Create(filepath.Join(dir, ownerFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, os.Getpid())
	return errors.Join(err, f.Close())
}

// load reads what is kept in memory, and writes the metadata of a new store.
func (s *Store) load() error {
	if err := s.loadFormat(); err != nil {
		return err
	}
	compacted, err := s.get(compactedKey)
	switch {
	case errors.Is(err, engine.ErrNotFound):
	case err != nil:
		return err
	case len(compacted) != 8:
		return fmt.Errorf("%w: the compacted revision has %d bytes", errDamaged, len(compacted))
	default:
		s.compacted = int64(binary.BigEndian.Uint64(compacted))
	}
	it, err := s.db.NewIter(&engine.IterOptions{LowerBound: []byte{logSpace}, UpperBound: []byte{logSpace + 1}})
	if err != nil {
		return err
	}
	last := s.baseLocked()
	for it.First(); it.Valid(); it.Next() {
		e, err := parseLog(it.Key(), it.Value())
		if err == nil && e.revision != last+1 {
			err = fmt.Errorf("%w: revision %d follows %d", errDamaged, e.revision, last)
		}
		if err != nil {
			return errors.Join(err, it.Close())
		}
		s.log = append(s.log, e)
		last = e.revision
	}
	s.published.Store(last)
	return it.Close()
}

func (s *Store) loadFormat() error {
	mark, err := s.get(formatKey)
	switch {
	case err == nil && string(mark) == format:
		return nil
	case err == nil:
		return fmt.Errorf("the store has format %q; this version reads %q", mark, format)
	case !errors.Is(err, engine.ErrNotFound):
		return err
	}
	it, err := s.db.NewIter(nil)
	if err != nil {
		return err
	}
	foreign := it.First()
	if err := it.Close(); err != nil {
		return err
	}
	if foreign {
		return errors.New("the directory holds a database of another program")
	}
	return s.disk.guard(func() error {
		// The engine begins a new store in an old format. In the logs of that format, damage cannot be told from a
		// crash. A flush begins a new log, in the new format.
		return errors.Join(s.db.Set(formatKey, []byte(format), engine.Sync), s.db.Flush())
	})
}

// get returns a copy of the value under an engine's key.
func (s *Store) get(key []byte) ([]byte, error) {
	value, closer, err := s.db.Get(key)
	if err != nil {
		return nil, err
	}
	return append([]byte(nil), value...), closer.Close()
}

// Revision implements [storage.Storage].
func (s *Store) Revision() (current, compacted int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.published.Load(), s.compacted
}

// Failed returns a channel that is closed when the store takes no more writes, because the disk failed or damage was
// found. [Store.Err] returns the reason. Reads go on, and return everything that was answered. Watches deliver
// everything and then end with that error. To write again, close the store and open it.
func (s *Store) Failed() <-chan struct{} { return s.disk.failed }

// Err returns the reason why the store takes no more writes, [ErrFailed] or [ErrDamaged]. It returns nil while
// the store takes writes.
func (s *Store) Err() error { return s.disk.failure() }

// UntilFailed returns a context that ends when the store takes no more writes, with [Store.Err] as its cause. It is for
// work that is pointless after that. release frees the context's resources and ends it.
func (s *Store) UntilFailed(parent context.Context) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-s.Failed():
			cancel(s.Err())
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(nil)
		wg.Wait()
	}
}

// Close implements [storage.Storage]. It waits for calls in flight, but not for watches. Errors: those of [Store.Err],
// so that callers that only open and close a store learn of them in any case.
func (s *Store) Close() error {
	s.life.Lock()
	defer s.life.Unlock()
	if s.closed.Swap(true) {
		return nil
	}
	s.mu.Lock()
	s.wakeLocked()
	s.mu.Unlock()
	err := s.stop()
	if failure := s.disk.failure(); failure != nil {
		err = failure
	}
	return errors.Join(err, s.lock.Close())
}

// enter makes Close wait for the caller, which must call leave when it has finished with the engine.
func (s *Store) enter() error {
	s.life.RLock()
	if s.closed.Load() {
		s.life.RUnlock()
		return storage.ErrClosed
	}
	if s.disk.broken.Load() {
		s.life.RUnlock()
		return s.disk.failure()
	}
	return nil
}

func (s *Store) leave() { s.life.RUnlock() }

// baseLocked returns the revision just before the first entry of the log.
func (s *Store) baseLocked() int64 { return max(s.compacted, storage.FirstRevision) }
