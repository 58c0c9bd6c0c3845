// Package chapter09 has the programs of the chapter about reading one's own writes: one reconciler that reads in four
// ways, against an API server whose watch is late.
package chapter09
