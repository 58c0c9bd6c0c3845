// Package pebble is a store on disk. A write that was answered survives a crash of the process or of the machine.
// Revisions and history continue after it where they stopped.
//
// One process at a time can have a store open; a second one gets an [ErrInUse] that names the first. [Store.Backup]
// copies a store while it is in use.
//
// # What is on disk
//
// A store is a directory that belongs to the engine, github.com/cockroachdb/pebble, plus the file OWNER, which names
// the process that has or had it open. The store has three kinds of entries. Numbers are eight bytes, big-endian:
//
//	m format                                → "1"
//	m compacted                             → the revision compacted to
//	v <key, escaped> 00 01 <^revision>      → 'p' <value>                          the key's state since that revision
//	                                          'd'                                  … and the key does not exist since
//	l <revision>                            → 'p' or 'd', <previous revision>, <key>
//
// A write adds one entry of kind v and one of kind l, in one atomic batch. The versions of a key are next to each
// other, the latest first, because the revision is stored inverted. So one seek finds the state as of a revision: it is
// the first version found. The key is the one documented at [github.com/flyball-dev/flyball/localapi/storage.Key]. A
// zero byte in a key is followed by ff, so that any key can be stored and keys keep their order.
//
// Compaction to a revision walks the log up to it, and deletes the versions that those writes replaced.
//
// # Writing
//
// Invariants: revisions are assigned in the order of commits, without gaps. Readers and watchers see only what is on
// disk. A guard sees every write with a lower revision.
//
// The obvious design holds a lock while it checks the guard, assigns the revision, and waits for the disk. A write then
// costs a flush of the disk (about a millisecond), and a hundred concurrent writes cost a hundred flushes. Here a
// writer queues its request, and one of the writers is the leader. It takes everything queued, decides request after
// request against the disk and what the group has written so far, and commits one batch. While the disk works, the next
// group queues up, and its first writer leads next. The store needs no goroutine of its own, and a lone writer waits
// for nobody. A rejected write is answered after the group is on disk, so that a writer that lost a race finds the
// winner's state when it reads again.
//
// # Reading
//
// Reads are as of the published revision, that of the last group on disk. From the compacted revision on, the log's
// keys and revisions are also in memory. The last few thousand writes, up to 64 MiB, are there whole, with their tags,
// so a watch that keeps up never reads from the disk.
//
// # When the disk fails
//
// The first disk operation that fails, because the disk is full, read-only or broken, ends all writing: the write in
// progress and every later one get [ErrFailed] at once. Reads and watches go on, with everything that was answered,
// until the store is closed. The disk holds what a crash at that moment would have left, so opening the store again,
// when there is room, loses nothing. (The comment of type disk describes how the failure is kept from the engine.) A
// write that got the error may be stored, as after a crash. If the process has too many open files, no disk has failed:
// the store waits, and only gives up after a minute.
//
// A file that does not hold what was written to it also ends all writing, with an [ErrDamaged] that names the file.
// Logs and manifest are checked before the store is opened, because the engine would take damage for their end. Only
// one kind of damage cannot be told from a crash: damage to the last writes of a process that was killed.
package pebble
