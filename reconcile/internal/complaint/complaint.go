// Package complaint puts keys that are not well into one short line each, for the health of a controller. It is a room
// beside the loop of package reconcile.
package complaint

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Longest returns the key for which something has been so for longest, and how many keys there are for which it has
// been so for at least limit. A negative limit is none.
func Longest[K comparable](since map[K]time.Time, limit time.Duration) (longest K, keys int) {
	if limit < 0 {
		return longest, 0
	}
	for key, t := range since {
		if time.Since(t) < limit {
			continue
		}
		if keys++; keys == 1 || cmp.Or(t.Compare(since[longest]),
			strings.Compare(fmt.Sprint(key), fmt.Sprint(longest))) < 0 {
			longest = key
		}
	}
	return longest, keys
}

// About returns an error such as "name: 3 keys failing, ns/a for 12m0s", or nil if there is no key to complain about.
func About[K comparable](name, what string, since map[K]time.Time, limit time.Duration) error {
	longest, keys := Longest(since, limit)
	if keys == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s %s, %v for %s", name, Count(keys), what, longest,
		time.Since(since[longest]).Round(time.Second))
}

// Count returns "1 key" or "3 keys".
func Count(keys int) string {
	if keys == 1 {
		return "1 key"
	}
	return fmt.Sprintf("%d keys", keys)
}
