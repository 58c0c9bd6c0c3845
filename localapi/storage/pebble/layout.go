package pebble

import (
	"encoding/binary"
	"fmt"
	"strings"
)

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
