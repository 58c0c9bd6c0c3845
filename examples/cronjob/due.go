package main

import (
	"errors"
	"time"
)

// maxMissed is how many runs may have been missed. If there are more, a wrong clock is a likelier cause than a
// controller that was down, and counting them could take very long.
const maxMissed = 100

// errTooManyMissed asks the user to decide.
var errTooManyMissed = errors.New(
	"more than 100 runs were missed: set or lower startingDeadlineSeconds, or check the clocks",
)

// due returns the newest run that should have begun by now and has not, and the next one after now. Each is zero if
// there is none. Missed runs before the newest are lost.
func (c *CronJob) due(s Schedule, now time.Time) (missed, next time.Time, err error) {
	since := c.CreationTimestamp.Time
	if c.Status.LastScheduleTime != nil {
		since = c.Status.LastScheduleTime.Time
	}
	if c.Spec.StartingDeadlineSeconds != nil {
		// Runs due before this are too late to begin.
		if earliest := now.Add(-time.Duration(*c.Spec.StartingDeadlineSeconds) * time.Second); earliest.After(since) {
			since = earliest
		}
	}
	next = s.Next(now)
	runs := 0
	for t := s.Next(since); !t.IsZero() && !t.After(now); t = s.Next(t) {
		missed = t
		if runs++; runs > maxMissed {
			return time.Time{}, next, errTooManyMissed
		}
	}
	return missed, next, nil
}

// tooLate reports whether the run of that time must not begin any more.
func (c *CronJob) tooLate(run, now time.Time) bool {
	d := c.Spec.StartingDeadlineSeconds
	return d != nil && run.Add(time.Duration(*d)*time.Second).Before(now)
}
