package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	engine "github.com/cockroachdb/pebble/v2"

	"github.com/flyball-dev/flyball/localapi/storage"
)

// versions returns an iterator over the versions on disk.
func (s *Store) versions() (*engine.Iterator, error) {
	return s.db.NewIter(&engine.IterOptions{LowerBound: []byte{versionSpace}, UpperBound: []byte{versionSpace + 1}})
}

// seekVersion returns the state of key as of a revision, and whether it exists then. escaped is versionsOf(key).
// Afterwards the iterator is at that version, or at the next key if there is none.
func seekVersion(it *engine.Iterator, escaped []byte, key string, revision int64) (storage.Record, bool, error) {
	if !it.SeekGE(versionKey(key, revision)) || !bytes.HasPrefix(it.Key(), escaped) {
		return storage.Record{}, false, it.Error()
	}
	return versionAt(it, key)
}

// versionAt returns the version that the iterator is at. A deletion is a zero record.
func versionAt(it *engine.Iterator, key string) (storage.Record, bool, error) {
	_, revision, err := parseVersionKey(it.Key())
	if err != nil {
		return storage.Record{}, false, err
	}
	stored, err := it.ValueAndErr()
	if err != nil {
		return storage.Record{}, false, err
	}
	value, deleted, err := parseVersion(stored)
	if err != nil || deleted {
		return storage.Record{}, false, err
	}
	return storage.Record{Key: key, Value: append(make([]byte, 0, len(value)), value...), Revision: revision}, true, nil
}

// Get implements [storage.Storage].
func (s *Store) Get(_ context.Context, key string) (storage.Record, error) {
	if err := s.enter(); err != nil {
		return storage.Record{}, err
	}
	defer s.leave()
	it, revision, err := s.versionsAt(0)
	if err != nil {
		return storage.Record{}, err
	}
	r, ok, err := seekVersion(it, versionsOf(key), key, revision)
	if closeErr := it.Close(); err == nil {
		err = closeErr
	}
	if err == nil && !ok {
		err = storage.ErrNotFound
	}
	return r, s.disk.damaged(err)
}

// List implements [storage.Storage].
func (s *Store) List(ctx context.Context, prefix string, o storage.ListOptions) (storage.Page, error) {
	if err := s.enter(); err != nil {
		return storage.Page{}, err
	}
	defer s.leave()
	it, revision, err := s.versionsAt(o.Revision)
	if err != nil {
		return storage.Page{}, err
	}
	page, err := list(ctx, it, prefix, o, revision)
	if closeErr := it.Close(); err == nil {
		err = closeErr
	}
	return page, s.disk.damaged(err)
}

// versionsAt returns an iterator over a snapshot that has everything that a list at revision (0: now) needs, whatever
// is compacted meanwhile.
func (s *Store) versionsAt(revision int64) (*engine.Iterator, int64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch current := s.published.Load(); {
	case revision == 0:
		revision = current
	case revision > current:
		return nil, 0, storage.ErrFuture
	case revision < s.compacted:
		return nil, 0, storage.ErrCompacted
	}
	it, err := s.versions()
	return it, revision, err
}

// list collects a page. The state of each key is its first version at or below the revision.
func list(ctx context.Context, it *engine.Iterator, prefix string, o storage.ListOptions,
	revision int64,
) (storage.Page, error) {
	page := storage.Page{Revision: revision}
	within := versionPrefix(prefix)
	for ok := it.SeekGE(versionPrefix(max(prefix, o.Start))); ok && bytes.HasPrefix(it.Key(), within); {
		if err := ctx.Err(); err != nil {
			return storage.Page{}, err
		}
		escaped, at, err := parseVersionKey(it.Key())
		if err != nil {
			return storage.Page{}, err
		}
		escaped = bytes.Clone(escaped) // the iterator reuses its memory
		key := keyOf(escaped)
		if at <= revision || it.SeekGE(versionKey(key, revision)) && bytes.HasPrefix(it.Key(), escaped) {
			r, exists, err := versionAt(it, key)
			switch {
			case err != nil:
				return storage.Page{}, err
			case !exists:
			case o.Limit > 0 && len(page.Records) == o.Limit:
				page.Remaining++
			default:
				page.Records = append(page.Records, r)
			}
		}
		ok = skip(it, escaped)
	}
	return page, it.Error()
}

// steps is how many versions of a key are skipped one by one before a seek is cheaper.
const steps = 4

// skip moves the iterator past the versions that begin with escaped, and reports whether an entry follows.
func skip(it *engine.Iterator, escaped []byte) bool {
	for range steps {
		if !it.Valid() || !bytes.HasPrefix(it.Key(), escaped) {
			return it.Valid()
		}
		it.Next()
	}
	return it.SeekGE(after(escaped))
}

// The entries of a store; see the package comment.
const (
	metaSpace    = 'm'
	versionSpace = 'v'
	logSpace     = 'l'

	format = "1"

	opPut    = 'p'
	opDelete = 'd'
)

var (
	formatKey    = []byte("mformat")
	compactedKey = []byte("mcompacted")
)

// appendEscaped appends key so that the order of keys is kept, and no escaped key is a prefix of another one plus its
// terminator.
func appendEscaped(b []byte, key string) []byte {
	for {
		i := strings.IndexByte(key, 0)
		if i < 0 {
			return append(b, key...)
		}
		b = append(append(b, key[:i+1]...), 0xff)
		key = key[i+1:]
	}
}

// versionPrefix returns the common prefix of all versions of all keys that begin with prefix.
func versionPrefix(prefix string) []byte {
	return appendEscaped(append(make([]byte, 0, len(prefix)+16), versionSpace), prefix)
}

// versionsOf returns the common prefix of all versions of one key.
func versionsOf(key string) []byte { return append(versionPrefix(key), 0, 1) }

// versionKey returns the engine's key of one version.
func versionKey(key string, revision int64) []byte {
	return binary.BigEndian.AppendUint64(versionsOf(key), ^uint64(revision))
}

// parseVersionKey is the inverse of versionKey. escaped equals versionsOf(key), and aliases b.
func parseVersionKey(b []byte) (escaped []byte, revision int64, err error) {
	at := len(b) - 8
	if at < 3 || b[0] != versionSpace || b[at-2] != 0 || b[at-1] != 1 {
		return nil, 0, fmt.Errorf("%w: version key %q", errDamaged, b)
	}
	return b[:at], int64(^binary.BigEndian.Uint64(b[at:])), nil
}

// keyOf returns the key whose versionsOf is escaped.
func keyOf(escaped []byte) string {
	return strings.ReplaceAll(string(escaped[1:len(escaped)-2]), "\x00\xff", "\x00")
}

// parseVersion splits the value stored under a version key. value aliases b.
func parseVersion(b []byte) (value []byte, deleted bool, err error) {
	if len(b) == 0 || b[0] != opPut && b[0] != opDelete {
		return nil, false, fmt.Errorf("%w: a version of %d bytes", errDamaged, len(b))
	}
	return b[1:], b[0] == opDelete, nil
}

func op(deleted bool) byte {
	if deleted {
		return opDelete
	}
	return opPut
}

func logKey(revision int64) []byte {
	return binary.BigEndian.AppendUint64([]byte{logSpace}, uint64(revision))
}

// logValue returns the value stored under the log key of e.
func logValue(e entry) []byte {
	b := append(make([]byte, 0, 9+len(e.key)), op(e.deleted))
	return append(binary.BigEndian.AppendUint64(b, uint64(e.previous)), e.key...)
}

func parseLog(key, value []byte) (entry, error) {
	if len(key) != 9 || len(value) < 9 || value[0] != opPut && value[0] != opDelete {
		return entry{}, fmt.Errorf("%w: log entry %q", errDamaged, key)
	}
	return entry{
		revision: int64(binary.BigEndian.Uint64(key[1:])),
		previous: int64(binary.BigEndian.Uint64(value[1:])),
		deleted:  value[0] == opDelete,
		key:      string(value[9:]),
	}, nil
}

// after returns the smallest key that is greater than all that begin with prefix, or nil if there is none.
func after(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			end := append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}
