package node

import (
	"flag"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/docblock"
)

// page shows what tests have seen, in blocks of their names.
const page = "../../docs/kind/README.md"

var update = flag.Bool("update", false, "write the blocks of "+page+" anew, instead of comparing them")

// onPage compares what a test has seen with the block of its name. What differs between two runs may differ.
func onPage(t *testing.T, markdown string) {
	t.Helper()
	if *update {
		must(t, docblock.Write(page, t.Name(), markdown))
	}
	shown, err := docblock.Read(page, t.Name())
	must(t, err)
	if shape(shown) != shape(markdown) {
		t.Errorf("%s does not show what happens now: run make test-node UPDATE=1 and read the text around it. "+
			"It shows:\n%s\nThis run:\n%s", page, shown, markdown)
	}
}

// varying matches what differs between two runs. The first group stays.
var varying = []*regexp.Regexp{
	// flyball demo: the address of the node, watch events and durations
	regexp.MustCompile(`https://[\d.]+:\d+`),
	regexp.MustCompile(`watch +\d+ +\S+`),
	regexp.MustCompile(`\d+ watch events in \S+`),
	// table: all figures without preStop, and of the others all but what was refused and what failed
	regexp.MustCompile("(without `preStop`) .*"),
	regexp.MustCompile(`\| \d+ (\| \d+ \| \d+ \|) \S+s \| \S+s \| \S+s \|`),
}

// shape returns a block without what differs between two runs.
func shape(block string) string {
	for _, v := range varying {
		block = v.ReplaceAllString(block, "$1")
	}
	return strings.TrimSpace(block)
}

// TestShape: blocks of two runs have the same shape unless a line, an outcome or the number of lost requests differs.
func TestShape(t *testing.T) {
	const transcript = "The cluster at https://172.17.0.2:6443, with its own controllers and kubelets.\n\n" +
		"4  roll out web:does-not-exist, which gets stuck      4 available, 3 cannot start  watch   51   6.78s\n\n" +
		"demo: ok: 405 watch events in 15.91s"
	theirs := figures{requests: 1966, p50: time.Millisecond, p99: time.Second, rollout: time.Minute}
	ours := figures{requests: 7, p50: time.Microsecond}
	lost := figures{requests: 546, refused: 11, failed: 26}
	for _, test := range []struct {
		name, one, other string
		same             bool
	}{
		{
			"numbers", transcript,
			strings.NewReplacer("0.2:6443", "0.13:443", "  51   6.78s", "1051    12s", "405", "9", "15.91", "1m2").
				Replace(transcript), true,
		},
		{"outcome", transcript, strings.Replace(transcript, "3 cannot", "2 cannot", 1), false},
		{"title", transcript, strings.Replace(transcript, "gets", "is", 1), false},
		{"line", transcript, strings.Replace(transcript, "\n4 ", "\n3  scale\n4 ", 1), false},
		{"figures", table(theirs, ours, lost), table(ours, theirs, ours), true},
		{"ours refused", table(theirs, ours, lost), table(theirs, figures{requests: 7, refused: 1}, lost), false},
		{
			"a spec of Kubernetes failed", "| `x` | 12 | 0 | 0 | 12 | 0 | 0 |",
			"| `x` | 12 | 0 | 0 | 11 | 1 | 0 |", false,
		},
		{"theirs failed", table(theirs, ours, lost), table(figures{requests: 7, failed: 1}, ours, lost), false},
	} {
		if same := shape(test.one) == shape(test.other); same != test.same {
			t.Errorf("%s: same shape: %v, want %v:\n%s\n%s", test.name, same, test.same, shape(test.one),
				shape(test.other))
		}
	}
}

// TestPage: the page's table is one that table makes, without a lost request but for those of the pods without preStop.
func TestPage(t *testing.T) {
	shown, err := docblock.Read(page, "TestStory")
	must(t, err)
	if want := table(figures{}, figures{}, figures{}); shape(shown) != shape(want) {
		t.Errorf("%s shows\n%s\nwant the shape of\n%s", page, shown, want)
	}
}
