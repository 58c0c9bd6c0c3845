package garbagecollector

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// unresolved has the keys whose last attempt ended with an [unresolvedError]: the server could not be asked about the
// object or one of its owners. Because nothing is deleted on a guess, such a key waits until the kind is served or the
// object changes.
//
// Concurrency: safe for concurrent use. The zero value is empty.
type unresolved struct {
	mu   sync.Mutex
	keys map[key]error
}

func isUnresolved(err error) bool {
	var u *unresolvedError
	return errors.As(err, &u)
}

// record records how an attempt ended. It returns err only if a retry may help.
func (u *unresolved) record(k key, err error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !isUnresolved(err) {
		delete(u.keys, k)
		return err
	}
	if u.keys == nil {
		u.keys = make(map[key]error)
	}
	u.keys[k] = err
	return nil
}

func (u *unresolved) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.keys)
}

// keysOf returns the keys of one object.
func (u *unresolved) keysOf(uid types.UID) (keys []key) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, k := range []key{{uid: uid}, {uid: uid, virtual: true}, {uid: uid, orphan: true}} {
		if _, found := u.keys[k]; found {
			keys = append(keys, k)
		}
	}
	return keys
}

func (u *unresolved) all() map[key]error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.keys)
}

// retry queues keys again.
func (c *collector) retry(keys ...key) {
	for _, k := range keys {
		if k.orphan {
			c.orphans.Enqueue(k)
		} else {
			c.deletes.Enqueue(k)
		}
	}
}

// retryUnresolved queues the keys that may be resolved by now, and those that need no work any more, so that record
// removes them.
func (c *collector) retryUnresolved() {
	for k, err := range c.unresolved.all() {
		if !c.graph.needsWork(k) || c.isServedNow(err) {
			c.retry(k)
		}
	}
}

// isServedNow reports whether err says that a kind was not served, and the kind is served now.
func (c *collector) isServedNow(err error) bool {
	var u *unresolvedError
	if !errors.As(err, &u) || u.kind == (schema.GroupKind{}) {
		return false
	}
	_, _, err = c.remote.resource(u.kind, "")
	return err == nil
}

// maxNamed is the most objects that Note names.
const maxNamed = 5

// Note names the objects that the collector leaves alone because the server cannot be asked about them or their owners.
// It is empty if there are none. The manager shows it in /readyz without becoming unready: the process works, but a
// person has to correct the references.
func (c *collector) Note() string {
	var notes []string
	for k, err := range c.unresolved.all() {
		v, found := c.graph.view(k)
		if !found {
			continue
		}
		note := fmt.Sprintf("%s: %v", v.id, err)
		if k.virtual && len(v.dependents) > 0 {
			note = fmt.Sprintf("%s, owner of %s", note, v.dependents[0].id)
			if more := len(v.dependents) - 1; more > 0 {
				note += fmt.Sprintf(" and %d more", more)
			}
		}
		notes = append(notes, note)
	}
	if len(notes) == 0 {
		return ""
	}
	slices.Sort(notes)
	if more := len(notes) - maxNamed; more > 0 {
		notes = append(notes[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return "left alone, because they cannot be looked for: " + strings.Join(notes, "; ") +
		"; correct the owner references, or serve the kind"
}
