package simtest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestNamesWithUIDs: the UID of an owner, and so a name made of it, may depend on what was created before. Only the
// number of such objects counts.
func TestNamesWithUIDs(t *testing.T) {
	const one, two = "job-aaaaaaaa-0000-0000-0000-000000000001", "job-bbbbbbbb-0000-0000-0000-000000000002"
	made := func(names ...string) *run {
		r := &run{end: &end{}}
		for _, name := range names {
			i := id{resource{GroupResource: corev1.Resource("pods")}, "default", name}
			r.changes = append(r.changes, change{id: i, created: true, by: byProgram})
		}
		return r
	}
	for _, test := range []struct {
		name string
		run  *run
		want string // the subject of the finding
	}{
		{"another UID", made(two), ""},
		{"two", made(one, two), "pods default/job-*"},
		{"another name", made("job-2"), "pods default/job-2"},
	} {
		found := ""
		test.run.judgeCreates(made(one), func(_ Rule, subject, _ string, _ []string) { found = subject })
		if found != test.want {
			t.Errorf("%s: found %q, want %q", test.name, found, test.want)
		}
	}
}
