// Package memory is a store in the memory of the process. It holds every version of every key since the last
// compaction, and the log of writes that produced them.
package memory
