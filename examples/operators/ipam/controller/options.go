package controller

import "time"

// Options decide which addresses count as unused. [Defaults] returns the usual ones.
type Options struct {
	// CleanupTerminating releases the addresses of Pods that are being deleted before they are gone.
	CleanupTerminating bool
	// CleanupDisrupted releases the addresses of Pods that the taint manager has decided to delete.
	CleanupDisrupted bool
	// VerifyNetworkStatus releases the addresses that a running Pod does not have according to its network status. Pods
	// without that status keep theirs. It applies to IPPools only.
	VerifyNetworkStatus bool

	// MismatchGrace is how long an address must be missing from the network status before it is released. Multus writes
	// the status after the address was allocated, and a Pod whose sandbox is recreated keeps the old status for a
	// while. Zero means 10 s, negative not at all.
	MismatchGrace time.Duration
	// ShowFor is how long conditions report what was done (OrphansCleaned, PoolCreated, PoolUpdated) before they report
	// Reconciled. Zero means 30 s, negative not at all.
	ShowFor time.Duration
	// MinInterval is the least time between two passes over one pool, so that a thousand Pods that appear at once cause
	// only a few passes. Zero means 200 ms, negative none.
	MinInterval time.Duration
	// Metrics count what was done. Nil counts nothing.
	Metrics *Metrics
}

// Defaults returns the default options of the operator.
func Defaults() Options { return Options{CleanupDisrupted: true, VerifyNetworkStatus: true} }

// withDefaults replaces zero durations by their defaults, and negative ones by zero.
func (o Options) withDefaults() Options {
	for _, d := range []struct {
		value *time.Duration
		usual time.Duration
	}{{&o.MismatchGrace, 10 * time.Second}, {&o.ShowFor, 30 * time.Second}, {&o.MinInterval, 200 * time.Millisecond}} {
		if *d.value == 0 {
			*d.value = d.usual
		}
		*d.value = max(*d.value, 0)
	}
	return o
}
