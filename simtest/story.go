package simtest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// storyLines is how many lines of a story a finding shows; what it leaves out is before the first fault.
const storyLines = 40

// diffLines is how many differences between ends a finding shows.
const diffLines = 12

// String tells the finding: what is wrong, how it came to that, and how the ends differ.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "simtest: %s: %s\n", f.Rule, f.Text)
	b.WriteString(tellStory(f.story, storyLines))
	for i, line := range f.Diff {
		if i == diffLines {
			fmt.Fprintf(&b, "  and %d more differences\n", len(f.Diff)-i)
			break
		}
		b.WriteString("  " + f.when + ", " + line + "\n")
	}
	return b.String()
}

// report is String with a line that repeats the run.
func (f Finding) report(test string) string {
	var anchored []string
	for _, part := range strings.Split(test, "/") {
		anchored = append(anchored, "^"+regexp.QuoteMeta(part)+"$")
	}
	return f.String() + fmt.Sprintf("  repeat it with: go test -run '%s' -sim.replay=%s", strings.Join(anchored, "/"),
		f.plan.token())
}

// tellStory numbers the lines of a story, at most so many.
func tellStory(story []*moment, most int) string {
	story = slices.DeleteFunc(slices.Clone(story), func(m *moment) bool { return m.minor })
	first := 0
	for first < len(story) && story[first].fault == nil {
		first++
	}
	if first == len(story) {
		first = 0
	}
	skip := min(max(len(story)-most, 0), first)
	var b strings.Builder
	if skip > 0 {
		fmt.Fprintf(&b, "  1-%d. as in the run without faults\n", skip)
	}
	var at time.Duration
	for i := skip; i < len(story); {
		if i-skip >= most {
			fmt.Fprintf(&b, "  … and %d more\n", len(story)-i)
			break
		}
		m, n := story[i], 1
		for i+n < len(story) && story[i+n].repeats(m) {
			n++
		}
		later := ""
		if m.at-at >= time.Second {
			later = fmt.Sprintf("(%v later) ", (m.at - at).Round(time.Second))
		}
		fmt.Fprintf(&b, "  %d. %s%s\n", i+1, later, m)
		if n > 2 {
			last := story[i+n-1]
			fmt.Fprintf(&b, "  %d-%d. the same %d more times within %v\n", i+2, i+n, n-1,
				(last.at - m.at).Round(time.Second))
			m, i = last, i+n-1
		}
		at = m.at
		i++
	}
	return b.String()
}

// repeats reports whether m tells the same as another moment, at another time.
func (m *moment) repeats(other *moment) bool {
	return m.fault == nil && other.fault == nil && m.actor == other.actor && m.text == other.text &&
		m.result == other.result && m.result != "" && (m.write == 0) == (other.write == 0)
}
