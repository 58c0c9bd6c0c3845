package controller

import "time"

// Options say what counts as not in use any more. [Defaults] has the usual ones.
type Options struct {
	// CleanupTerminating takes the addresses of Pods that are being deleted before they are gone.
	CleanupTerminating bool
	// CleanupDisrupted takes those of Pods that the taint manager has decided to delete.
	CleanupDisrupted bool
	// VerifyNetworkStatus takes the addresses that a running Pod does not have by its own network status. Pods without that status
	// keep theirs. It concerns IPPools only.
	VerifyNetworkStatus bool

	// MismatchGrace is how long a network status must lack an address before that counts: Multus writes it after the address was
	// allocated, and a Pod whose sandbox is made anew has the old one for a while. Zero means 10 s, negative not at all.
	MismatchGrace time.Duration
	// ShowFor is how long conditions say what was done (OrphansCleaned, PoolCreated, PoolUpdated) before they say Reconciled. Zero
	// means 30 s, negative not at all.
	ShowFor time.Duration
	// MinInterval is the least time between two passes over one pool, so that a thousand Pods that come at once are a few of them.
	// Zero means 200 ms, negative none.
	MinInterval time.Duration
	// Metrics are told what was done; nil: nobody is.
	Metrics *Metrics
}

// Defaults are the options of an operator that was not told otherwise.
func Defaults() Options { return Options{CleanupDisrupted: true, VerifyNetworkStatus: true} }

// withDefaults gives zero durations their meaning; negative ones become zero.
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
