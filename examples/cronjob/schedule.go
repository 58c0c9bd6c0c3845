package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Schedule is a set of minutes: those whose minute, hour, month and day are in the respective field. Each field is a
// bit set.
type Schedule struct {
	minutes, hours, days, months, weekdays uint64
	// either means that a day matches if it is in days or in weekdays. It is set if both were restricted.
	either bool
}

// column describes one of the five fields and the numbers it may have.
type column struct {
	name     string
	min, max int
}

var scheduleFields = [5]column{
	{"minute", 0, 59},
	{"hour", 0, 23},
	{"day of the month", 1, 31},
	{"month", 1, 12},
	{"day of the week", 0, 7},
}

var shorthands = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// ParseSchedule parses a schedule in the format of crontab(5): minute, hour, day of the month, month and day of the
// week. Each is a list of numbers and ranges, or *, with an optional step after a slash. Shorthands such as @daily are
// accepted. Sunday is 0 or 7. If both kinds of day are restricted, a match of either suffices.
func ParseSchedule(text string) (Schedule, error) {
	if long, known := shorthands[text]; known {
		text = long
	}
	words := strings.Fields(text)
	if len(words) != len(scheduleFields) {
		return Schedule{}, fmt.Errorf("schedule %q: got %d fields, want %d", text, len(words), len(scheduleFields))
	}
	var sets [5]uint64
	for i, word := range words {
		var err error
		if sets[i], err = scheduleFields[i].parse(word); err != nil {
			return Schedule{}, fmt.Errorf("schedule %q: %s: %w", text, scheduleFields[i].name, err)
		}
	}
	if sets[4]&(1<<7) != 0 {
		sets[4] |= 1
	}
	return Schedule{
		minutes: sets[0], hours: sets[1], days: sets[2], months: sets[3], weekdays: sets[4],
		either: words[2][0] != '*' && words[4][0] != '*',
	}, nil
}

// parse parses a list of ranges.
func (f column) parse(word string) (set uint64, err error) {
	for part := range strings.SplitSeq(word, ",") {
		span, stepText, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			if step, err = strconv.Atoi(stepText); err != nil || step < 1 {
				return 0, fmt.Errorf("%q is no step", stepText)
			}
		}
		from, to := f.min, f.max
		if span != "*" {
			first, last, isRange := strings.Cut(span, "-")
			if from, err = f.number(first); err != nil {
				return 0, err
			}
			switch {
			case isRange:
				if to, err = f.number(last); err != nil {
					return 0, err
				}
			case !stepped:
				to = from
			}
		}
		if from > to {
			return 0, fmt.Errorf("%q ends before it begins", span)
		}
		for n := from; n <= to; n += step {
			set |= 1 << n
		}
	}
	return set, nil
}

func (f column) number(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < f.min || n > f.max {
		return 0, fmt.Errorf("%q is not a number from %d to %d", text, f.min, f.max)
	}
	return n, nil
}

// horizon is how far Next looks. Two 29ths of February are at most eight years apart.
const horizon = 9 * 366 * 24 * time.Hour

// Next returns the first minute of the schedule after t, in UTC. It returns the zero time if there is none, as for a
// 30th of February.
func (s Schedule) Next(t time.Time) time.Time {
	t = t.UTC()
	end := t.Add(horizon)
	for at := t.Truncate(time.Minute).Add(time.Minute); at.Before(end); {
		switch {
		case s.months&(1<<at.Month()) == 0:
			at = time.Date(at.Year(), at.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		case !s.hasDay(at):
			at = time.Date(at.Year(), at.Month(), at.Day()+1, 0, 0, 0, 0, time.UTC)
		case s.hours&(1<<at.Hour()) == 0:
			at = at.Truncate(time.Hour).Add(time.Hour)
		case s.minutes&(1<<at.Minute()) == 0:
			at = at.Add(time.Minute)
		default:
			return at
		}
	}
	return time.Time{}
}

func (s Schedule) hasDay(t time.Time) bool {
	day, weekday := s.days&(1<<t.Day()) != 0, s.weekdays&(1<<t.Weekday()) != 0
	if s.either {
		return day || weekday
	}
	return day && weekday
}
