// Package pebble is a store on disk: a write that was answered is there after a crash of the process or of the machine, and
// revisions, history included, go on where they stopped.
//
// One process at a time can have a store open; a second gets an [InUseError] that names the first. [Store.Backup] copies a
// store while it is in use.
//
// # What is on disk
//
// A store is a directory that belongs to the engine, github.com/cockroachdb/pebble, plus the file OWNER, which names the process
// that has or had it open. Three kinds of entries are in it; numbers are eight bytes, big-endian:
//
//	m format                                → "1"
//	m compacted                             → the revision compacted to
//	v <key, escaped> 00 01 <^revision>      → 'p' <value>                          the key's state since that revision
//	                                          'd'                                  … and the key does not exist since
//	l <revision>                            → 'p' or 'd', <previous revision>, <key>
//
// A write adds one entry of kind v and one of kind l, in one atomic batch. Versions of a key are next to each other, the latest
// first, because the revision is stored inverted: the state as of a revision is the first version that one seek finds. The key is
// the one documented at [github.com/flyball-dev/flyball/localapi/storage.Key]. So that any key can be stored, and keys sort as
// they do elsewhere, a zero byte in one is followed by ff.
//
// Compaction to a revision walks the log up to it, and deletes the versions that those writes replaced.
//
// # Writing
//
// Invariants: revisions are assigned in the order of commits, without gaps; what a reader or a watcher sees is on disk; a guard
// sees every write with a lower revision.
//
// The obvious design holds a lock while it checks the guard, assigns the revision, and waits for the disk. A write then costs a
// flush of the disk (about a millisecond), and so do a hundred writers, a hundred times. Here a writer queues its request.
// One of the writers is the leader: it takes everything queued, decides request after request, against the disk and what the group
// has written so far, and commits one batch. While the disk works the next group queues up, whose first writer leads next. There
// is no goroutine of the store's own, and a lone writer waits for nobody. A refused write is answered after the group is on disk, so
// that a writer who lost a race finds the winner's state when it reads again.
//
// # Reading
//
// Reads are as of the published revision: that of the last group that is on disk. The log's keys and revisions are in memory,
// too, from the compacted revision on, and the last thousands of writes whole, with their tags: a watch that keeps up never reads
// from the disk.
//
// # When the disk fails
//
// The first operation on the disk that fails, because it is full, read-only or broken, ends all writing: the write in progress and every
// later one get a [FailedError], at once. Reads and watches go on, with everything that was answered, until the store is closed. On
// disk is what a crash at that moment would have left, so that opening the store again, when there is room, loses nothing. (See disk
// for how the engine is kept from hearing of it.) A write that got the error may be there then, as after a crash.
//
// A file that does not hold what was written to it ends all writing, too, with a [DamagedError] that names it. Logs and manifest are
// checked before the store is opened, because the engine would take damage for their end. One thing cannot be told from a crash: damage to
// the last writes of a process that was killed.
package pebble
