package main

import (
	"errors"
	"time"
)

// maxMissed is how many runs may have been missed. A schedule of which more were is more likely to be the fault of a clock than a
// controller that slept, and nobody should count for hours.
const maxMissed = 100

// errTooManyMissed asks for somebody to decide.
var errTooManyMissed = errors.New("more than 100 runs were missed: set or lower startingDeadlineSeconds, or check the clocks")

// due returns the newest run that should have begun by now and has not (zero if there is none), and the next one after now (zero
// if there is none any more). Runs before the newest are lost.
func (c *CronJob) due(s Schedule, now time.Time) (missed, next time.Time, err error) {
	since := c.CreationTimestamp.Time
	if c.Status.LastScheduleTime != nil {
		since = c.Status.LastScheduleTime.Time
	}
	if c.Spec.StartingDeadlineSeconds != nil {
		// What should have begun before this will not.
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

// tooLate says whether the run of that time must not begin any more.
func (c *CronJob) tooLate(run, now time.Time) bool {
	d := c.Spec.StartingDeadlineSeconds
	return d != nil && run.Add(time.Duration(*d)*time.Second).Before(now)
}
