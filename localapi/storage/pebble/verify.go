package pebble

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A log and a manifest are read up to the first chunk that is not whole. The engine takes that for the end, as a crash
// leaves one, unless a chunk in a later block of 32 KiB proves otherwise. But a damaged chunk looks like the end, too.
// Then everything behind it would be lost, including writes that were answered, and the files that the manifest does
// not name any more would be deleted. So before the engine opens a store, verify looks for what a crash does not leave
// behind:
//
//   - in a log, a whole chunk behind the broken one which says that the broken one was flushed to the disk before it,
//     or the mark of a log that was closed;
//   - in a manifest, the beginning of another record, because each is flushed before the next is written; and, as the
//     last one, a chunk that has all its bytes, but not those of its checksum.
//
// What verify cannot tell from a crash is damage to the last write of a log that was not closed, and sometimes to the
// one before it: the last may have been begun before the log knew that the other was on disk.
//
// Source: github.com/cockroachdb/pebble/v2 v2.1.7 record/record.go, record/log_writer.go.

const (
	blockSize = 32 << 10

	// A chunk begins with a checksum (4 bytes) of what follows the length, a length (2) and an encoding (1). In a log
	// follow the number of the log (4) and, except in the first log of a store, the offset up to which the log was on
	// disk (8).
	shortHeader = 7
	markHeader  = 11
	logHeader   = 19

	markEncoding = 5 // the mark of a log that was closed; its number is the log's plus one, the rest is zero
)

// headers are the sizes of headers by encoding. Each size has four encodings: a whole record, its first part, a middle
// part, and the last.
var headers = [13]int{
	1: shortHeader, 2: shortHeader, 3: shortHeader, 4: shortHeader,
	5: markHeader, 6: markHeader, 7: markHeader, 8: markHeader,
	9: logHeader, 10: logHeader, 11: logHeader, 12: logHeader,
}

// chunked is a log or a manifest.
type chunked struct {
	text  []byte
	isLog bool
	log   uint32 // its number
}

// verify returns a damagedError if a log or the manifest is damaged in a way that the engine would take for its end.
func (d *disk) verify() error {
	names, err := d.FS.List(d.dir)
	if err != nil {
		return err
	}
	manifest := currentManifest(names)
	for _, name := range names {
		var c chunked
		if number, isLog := strings.CutSuffix(name, ".log"); isLog {
			n, err := strconv.ParseUint(number, 10, 64)
			if err != nil {
				continue
			}
			c = chunked{isLog: true, log: uint32(n)}
		} else if name != manifest {
			continue
		}
		if c.text, err = readAll(d.FS, d.PathJoin(d.dir, name)); err != nil {
			return err
		}
		if at, is := c.damage(); is {
			return &damagedError{
				Dir: d.dir, File: name,
				Err: fmt.Errorf("the record at byte %d of %d does not match its checksum", at, len(c.text)),
			}
		}
	}
	return nil
}

// currentManifest returns the manifest that the newest of the engine's markers names. A marker is called
// marker.manifest.<iteration>.<name>.
func currentManifest(names []string) (manifest string) {
	newest := uint64(0)
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, "marker.manifest.")
		iteration, value, found := strings.Cut(rest, ".")
		if n, err := strconv.ParseUint(iteration, 10, 64); ok && found && err == nil && n >= newest {
			newest, manifest = n, value
		}
	}
	return manifest
}

func readAll(fs vfs.FS, path string) (text []byte, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(f)
}

// damage returns the offset of the first chunk that was whole once and is not any more.
func (c *chunked) damage() (at int, is bool) {
	end := 0 // end of the whole chunks
	for next, ok := c.chunk(end); ok; next, ok = c.chunk(end) {
		end = next
		if left := blockSize - end%blockSize; left < logHeader && end+left <= len(c.text) &&
			isZero(c.text[end:end+left]) {
			end += left // no chunk fits there
		}
	}
	if c.isMark(end) || isZero(c.text[end:]) {
		return 0, false
	}
	for at := end + 1; at < len(c.text); at++ {
		if c.isMark(at) || c.proves(at, end) {
			return end, true
		}
	}
	return end, !c.isLog && hasAllBytes(c.text[end:])
}

// chunk returns the end of the chunk at an offset. ok is false if there is no whole chunk.
func (c *chunked) chunk(at int) (end int, ok bool) {
	if at+shortHeader > len(c.text) || int(c.text[at+6]) >= len(headers) {
		return 0, false
	}
	header := headers[c.text[at+6]]
	if header == 0 || (header > shortHeader) != c.isLog || at+header > len(c.text) {
		return 0, false
	}
	head := c.text[at : at+header]
	end = at + header + int(binary.LittleEndian.Uint16(head[4:]))
	if end > min(len(c.text), at-at%blockSize+blockSize) || c.isLog && binary.LittleEndian.Uint32(head[7:]) != c.log {
		return 0, false
	}
	return end, binary.LittleEndian.Uint32(head) == checksum(c.text[at+6:end])
}

// proves reports whether there is a whole chunk at offset at that can only have been written when the data at broken
// was already on disk.
func (c *chunked) proves(at, broken int) bool {
	if _, ok := c.chunk(at); !ok {
		return false
	}
	encoding := c.text[at+6]
	if c.isLog {
		return headers[encoding] == logHeader && binary.LittleEndian.Uint64(c.text[at+11:]) > uint64(broken)
	}
	return encoding <= 2 // the first chunk of a record
}

// isMark reports whether the mark of a closed log is at an offset.
func (c *chunked) isMark(at int) bool {
	if !c.isLog || at+markHeader > len(c.text) {
		return false
	}
	var mark [markHeader]byte
	mark[6] = markEncoding
	binary.LittleEndian.PutUint32(mark[7:], c.log+1)
	return bytes.Equal(c.text[at:at+markHeader], mark[:])
}

// hasAllBytes reports whether a manifest's last chunk is as long as its header says, or its checksum is that of the
// bytes that are there. A crash leaves a chunk that is too short or ends with zeros.
func hasAllBytes(chunk []byte) bool {
	if len(chunk) < shortHeader {
		return false
	}
	length := int(binary.LittleEndian.Uint16(chunk[4:]))
	return length == len(chunk)-shortHeader && !isZero(chunk[max(shortHeader, len(chunk)-16):]) ||
		binary.LittleEndian.Uint32(chunk) == checksum(chunk[6:])
}

func isZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum computes the engine's checksum.
//
// Source: github.com/cockroachdb/pebble/v2 v2.1.7 internal/crc.
func checksum(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}
