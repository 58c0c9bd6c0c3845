// Package takeover measures how long a follower takes from the lease to its first write, beside controller-runtime.
package takeover
