// Package seeded has controllers with bugs, each beside a mended twin, made with controller-runtime. They run unchanged
// in simtest: its caches, queues and clients are controller-runtime's.
//
// Package simtest/seeded has more of them, and says how to read them. Here are above all bugs of stale reads, which
// Flyball's client does not allow: it shows a controller its own writes.
package seeded
