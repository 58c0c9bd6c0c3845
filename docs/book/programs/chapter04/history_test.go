// Package chapter04 has the programs of chapter 4 of the book: three queues between a server and a cache, of which two
// show a cluster that never was. Its tests run them and write the traces and figures of docs/book/04-deltafifo.md.
package chapter04

import (
	"fmt"
	"slices"
	"strings"
)

// A change is what the server says about one object.
type change struct {
	version  int
	key, uid string
	leader   bool
	gone     bool
	// says is for the trace.
	says string
}

// before is what the cache holds when the story begins, at version 10.
var before = map[string]change{
	"db-1": {version: 9, key: "db-1", uid: "u1", leader: true},
	"db-2": {version: 10, key: "db-2", uid: "u2"},
}

// history is what happens on the server: db-2 takes over from db-1, which is deleted and made anew.
var history = []change{
	{version: 11, key: "db-2", uid: "u2", says: "db-2 is ready"},
	{version: 12, key: "db-1", uid: "u1", says: "db-1 steps down"},
	{version: 13, key: "db-2", uid: "u2", leader: true, says: "db-2 leads"},
	{version: 14, key: "db-1", uid: "u1", gone: true, says: "db-1 is deleted"},
	{version: 15, key: "db-1", uid: "u3", says: "db-1 is created"},
}

// A queue lies between the server and the cache.
type queue interface {
	Push(c change)
	// Take returns what the cache takes in one step; nothing when the queue is empty.
	Take() []change
}

// apply writes changes into a cache.
func apply(cache map[string]change, changes []change) {
	for _, c := range changes {
		if c.gone {
			delete(cache, c.key)
		} else {
			cache[c.key] = c
		}
	}
}

// look is what a reader sees: which pods there are, and which of them lead.
func look(cache map[string]change) string {
	var seen []string
	for _, c := range cache {
		name := c.key + "/" + c.uid
		if c.leader {
			name += " leads"
		}
		seen = append(seen, name)
	}
	slices.Sort(seen)
	return strings.Join(seen, ", ")
}

// highest is the highest version in the cache, or of a change that it took.
func highest(version int, changes []change) int {
	for _, c := range changes {
		version = max(version, c.version)
	}
	return version
}

// names lists changes by their versions.
func names(changes []change) string {
	var versions []string
	for _, c := range changes {
		versions = append(versions, fmt.Sprint(c.version))
	}
	return strings.Join(versions, ", ")
}
