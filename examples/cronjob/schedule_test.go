package main

import (
	"strings"
	"testing"
	"time"
)

func at(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestNext(t *testing.T) {
	for _, c := range []struct{ schedule, after, want string }{
		{"* * * * *", "2026-01-01 00:00", "2026-01-01 00:01"},
		{"*/15 * * * *", "2026-01-01 00:44", "2026-01-01 00:45"},
		{"*/15 * * * *", "2026-01-01 00:45", "2026-01-01 01:00"},
		{"5-7,30 2 * * *", "2026-01-01 02:07", "2026-01-01 02:30"},
		{"5-7,30 2 * * *", "2026-12-31 02:30", "2027-01-01 02:05"},
		{"10/20 * * * *", "2026-01-01 00:11", "2026-01-01 00:30"},
		{"0 0 29 2 *", "2026-01-01 00:00", "2028-02-29 00:00"},
		{"0 0 30 2 *", "2026-01-01 00:00", ""},
		{"0 9 * * 1-5", "2026-01-02 09:00", "2026-01-05 09:00"}, // Friday, Monday
		{"0 9 * * 7", "2026-01-02 09:00", "2026-01-04 09:00"},
		{"0 0 13 * 5", "2026-01-01 00:00", "2026-01-02 00:00"},  // the 13th or a Friday
		{"0 0 */2 * 5", "2026-01-01 00:00", "2026-01-09 00:00"}, // an odd day and a Friday
		{"0 0 1 4,10 *", "2026-04-01 00:00", "2026-10-01 00:00"},
		{"@hourly", "2026-01-01 00:59", "2026-01-01 01:00"},
		{"@weekly", "2026-01-01 00:00", "2026-01-04 00:00"},
		{"@yearly", "2026-01-01 00:00", "2027-01-01 00:00"},
	} {
		s, err := ParseSchedule(c.schedule)
		if err != nil {
			t.Errorf("%s: %v", c.schedule, err)
			continue
		}
		var want time.Time
		if c.want != "" {
			want = at(c.want)
		}
		if got := s.Next(at(c.after).Add(30 * time.Second)); !got.Equal(want) {
			t.Errorf("%s after %s: %s, want %s", c.schedule, c.after, got, want)
		}
	}
}

func TestParseScheduleRefuses(t *testing.T) {
	for schedule, want := range map[string]string{
		"":                "got 0 fields, want 5",
		"* * * *":         "got 4 fields, want 5",
		"60 * * * *":      `minute: "60" is not a number from 0 to 59`,
		"* 1-x * * *":     `hour: "x" is not a number from 0 to 23`,
		"* * 0 * *":       `day of the month: "0" is not a number`,
		"* * * 5-3 *":     `month: "5-3" ends before it begins`,
		"* * * * */0":     `day of the week: "0" is no step`,
		"@fortnightly":    "got 1 fields",
		"1,,2 * * * *":    `"" is not a number`,
		"* * * * MON-FRI": `"MON" is not a number`,
	} {
		if _, err := ParseSchedule(schedule); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", schedule, err, want)
		}
	}
}

// Next agrees with going through the minutes one by one.
func FuzzNext(f *testing.F) {
	for _, s := range []string{"*/7 3 * * *", "0 0 31 * *", "59 23 28-31 2 1", "1-5/2,40 */5 1,15 6-8 0"} {
		f.Add(s, int64(1_780_000_000))
	}
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		s, err := ParseSchedule(text)
		if err != nil || unix < 0 || unix > 1<<33 {
			t.Skip()
		}
		from := time.Unix(unix, 0).UTC()
		got := s.Next(from)
		at := from.Truncate(time.Minute)
		for range 3 * 24 * 60 {
			at = at.Add(time.Minute)
			in := s.minutes&(1<<at.Minute()) != 0 && s.hours&(1<<at.Hour()) != 0 && s.months&(1<<at.Month()) != 0 &&
				s.hasDay(at)
			if in {
				if !got.Equal(at) {
					t.Fatalf("%q after %s: %s, want %s", text, from, got, at)
				}
				return
			}
		}
		if !got.IsZero() && !got.After(at) {
			t.Fatalf("%q after %s: %s, which is not in it", text, from, got)
		}
	})
}
