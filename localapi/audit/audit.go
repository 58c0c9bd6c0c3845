package audit

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Entry is one answered request. A watch is recorded when it is opened.
type Entry struct {
	Time            time.Time
	Verb            string
	Group           string
	Resource        string
	Subresource     string
	Namespace       string
	Name            string // of a create: the name that the object got, or would have got
	User            string // the sender
	UserAgent       string
	ContentType     string // of the request's body; tells the kinds of patches apart
	Code            int
	ResourceVersion string // of the object or list in the answer
	DryRun          bool
	Lost            bool // the gate kept the answer from the client

	// Annotations are what admission noted about the request: the names of webhooks and what they noted. Read-only.
	Annotations map[string]string

	// ImpersonatedUser is the user that the sender acted as; "" if there was no impersonation.
	ImpersonatedUser string
}

// Mutates reports whether the request was a write that changed something, or would have: a mutating verb and a success
// code, and not a dry run.
func (e Entry) Mutates() bool {
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return e.Code < 300 && !e.DryRun
	}
	return false
}

// String returns the entry in one line, without its time.
func (e Entry) String() string {
	var b strings.Builder
	b.WriteString(e.Verb + " " + e.Resource)
	if e.Subresource != "" {
		b.WriteString("/" + e.Subresource)
	}
	if e.Namespace != "" || e.Name != "" {
		b.WriteString(" " + strings.Trim(e.Namespace+"/"+e.Name, "/"))
	}
	fmt.Fprintf(&b, " %d", e.Code)
	return b.String()
}

// Log is a list of entries. The zero value is empty and ready to use. All methods may be called concurrently.
type Log struct {
	// Limit bounds the number of entries kept; the oldest are dropped first. 0 keeps all. Set it before use.
	Limit int

	mu      sync.Mutex
	entries []Entry
}

// Record appends an entry.
func (l *Log) Record(e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
	if l.Limit > 0 && len(l.entries) > 2*l.Limit {
		l.entries = append([]Entry(nil), l.entries[len(l.entries)-l.Limit:]...)
	}
}

// Entries returns the entries for which match returns true, oldest first. A nil match selects all.
func (l *Log) Entries(match func(Entry) bool) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	entries := l.entries
	if l.Limit > 0 && len(entries) > l.Limit {
		entries = entries[len(entries)-l.Limit:]
	}
	if match == nil {
		return slices.Clone(entries)
	}
	var found []Entry
	for _, e := range entries {
		if match(e) {
			found = append(found, e)
		}
	}
	return found
}

// Writes returns the successful writes.
func (l *Log) Writes() []Entry { return l.Entries(Entry.Mutates) }

// Reset forgets everything.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}
