package pebble

import (
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

	// RecentWrites is how many of the last writes are kept in memory, whole and with their tags, for watches. 0 is 4096.
	RecentWrites int

	// fs is where the store is; nil: the operating system's files.
	fs vfs.FS
}

const (
	defaultCacheSize    = 8 << 20
	defaultRecentWrites = 4096
	ownerFile           = "OWNER"
)

func (o Options) withDefaults() Options {
	if o.CacheSize == 0 {
		o.CacheSize = defaultCacheSize
	}
	if o.RecentWrites == 0 {
		o.RecentWrites = defaultRecentWrites
	}
	if o.fs == nil {
		o.fs = vfs.Default
	}
	return o
}

// InUseError says that another process, or this one, has the store open.
type InUseError struct {
	Dir string
	// Owner is the process, 0 if it is not known.
	Owner int
}

func (e *InUseError) Error() string {
	if e.Owner == 0 {
		return fmt.Sprintf("the store in %s is in use: one process at a time can have it open", e.Dir)
	}
	return fmt.Sprintf("the store in %s is in use by process %d: one process at a time can have it open", e.Dir, e.Owner)
}

// Store is a [storage.Storage] on disk.
type Store struct {
	db     *engine.DB
	lock   *engine.Lock
	recent int

	// life is held for reading by whatever uses db, and for writing by Close.
	life   sync.RWMutex
	closed atomic.Bool

	// queue is where writers meet; see commit.go.
	queue queue

	// published is the revision of the last write on disk. It rises under mu and may be read without it.
	published atomic.Int64

	mu sync.RWMutex

	// log holds the writes after the compacted revision, in order.
	// Invariant: log[i].revision == base + 1 + i, and the last one's is published. Only the last Options.RecentWrites
	// have their event.
	log       []entry
	compacted int64

	// appended is closed, and replaced on demand, when the log grows or the store closes. Closed by the writer;
	// waited for by watches; nil while nobody waits.
	appended chan struct{}

	// compacting is held by Compact, so that one walks the log at a time.
	compacting sync.Mutex
}

// entry is a write in the log.
type entry struct {
	key                string
	revision, previous int64
	deleted            bool
	event              *storage.Event // nil: to be read from disk
}

var _ storage.Storage = (*Store)(nil)

// Open opens the store in dir, and makes it if there is none. What the engine has to tell goes to the logger of ctx; nothing
// else of ctx outlives the call. The caller closes the store.
//
// Errors: an [InUseError] while it is open elsewhere; a directory that holds something else; a damaged store. When the disk
// fails later, in the middle of a write, the engine panics: what was not answered is not promised, and what was is safe.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	o = o.withDefaults()
	s, err := open(ctx, dir, o)
	if err != nil {
		return nil, fmt.Errorf("open the store in %s: %w", dir, err)
	}
	return s, nil
}

func open(ctx context.Context, dir string, o Options) (_ *Store, err error) {
	if err := o.fs.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := refuseForeign(o.fs, dir); err != nil {
		return nil, err
	}
	lock, err := engine.LockDirectory(dir, o.fs)
	if err != nil {
		return nil, lockError(o.fs, dir, err)
	}
	cache := engine.NewCache(o.CacheSize)
	defer cache.Unref()
	db, err := engine.Open(dir, &engine.Options{
		FS: o.fs, Lock: lock, Cache: cache, Logger: logger{klog.FromContext(ctx)},
		FormatMajorVersion: engine.FormatWALSyncChunks,
	})
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s := &Store{db: db, lock: lock, recent: o.RecentWrites}
	if err := errors.Join(s.load(), writeOwner(o.fs, dir)); err != nil {
		return nil, errors.Join(err, db.Close(), lock.Close())
	}
	return s, nil
}

// refuseForeign refuses a directory with files of others, which the engine would mix its own with.
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

// lockError tells a lock that somebody holds from a directory that cannot be written.
func lockError(fs vfs.FS, dir string, err error) error {
	if path := (*os.PathError)(nil); errors.As(err, &path) {
		return err
	}
	inUse := &InUseError{Dir: dir}
	if f, openErr := fs.Open(fs.PathJoin(dir, ownerFile)); openErr == nil {
		text := make([]byte, 20)
		n, _ := f.Read(text)
		inUse.Owner, _ = strconv.Atoi(strings.TrimSpace(string(text[:n])))
		_ = f.Close()
	}
	return inUse
}

// writeOwner says who has the store, for the error that others get. It is a hint: the lock is what counts.
func writeOwner(fs vfs.FS, dir string) error {
	f, err := fs.Create(filepath.Join(dir, ownerFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, os.Getpid())
	return errors.Join(err, f.Close())
}

// load reads what is kept in memory, and writes the marks of a new store.
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
		return errors.New("the directory holds a database of somebody else")
	}
	return s.db.Set(formatKey, []byte(format), engine.Sync)
}

// get returns a copy of what is stored under an engine's key.
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

// Close implements [storage.Storage]. It waits for calls in flight, but not for watches.
func (s *Store) Close() error {
	s.life.Lock()
	defer s.life.Unlock()
	if s.closed.Swap(true) {
		return nil
	}
	s.mu.Lock()
	s.wakeLocked()
	s.mu.Unlock()
	return errors.Join(s.db.Close(), s.lock.Close())
}

// enter lets Close wait for the caller, who calls leave when it has done with the engine.
func (s *Store) enter() error {
	s.life.RLock()
	if s.closed.Load() {
		s.life.RUnlock()
		return storage.ErrClosed
	}
	return nil
}

func (s *Store) leave() { s.life.RUnlock() }

// baseLocked is the revision just before the first entry of the log.
func (s *Store) baseLocked() int64 { return max(s.compacted, storage.FirstRevision) }
