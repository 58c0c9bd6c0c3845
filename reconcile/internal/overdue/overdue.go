// Package overdue reports keys that have been in a state for too long, in one line for each state.
package overdue

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Longest returns the key that has been in a state for longest, and the number of keys that have been in it for at
// least limit. since has the time at which each key entered the state. A negative limit turns the report off.
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

// Report returns an error such as "name: 3 keys failing, ns/a for 12m0s", or nil if no key has been in the state for
// as long as limit.
func Report[K comparable](name, state string, since map[K]time.Time, limit time.Duration) error {
	longest, keys := Longest(since, limit)
	if keys == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s %s, %v for %s", name, Count(keys), state, longest,
		time.Since(since[longest]).Round(time.Second))
}

// Count returns "1 key" or "3 keys".
func Count(keys int) string {
	if keys == 1 {
		return "1 key"
	}
	return fmt.Sprintf("%d keys", keys)
}
