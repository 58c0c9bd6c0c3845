package seeded

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/simtest"
)

var (
	update = flag.Bool("update", false, "write the stories of the seeded bugs into testdata, instead of comparing them")
	mended = flag.Int("mended", 40, "how many runs to search each mended controller for a bug")
)

const (
	// findWithin is how many runs the search for a bug may take. A machine with two free processors performs that many
	// in less than five seconds. Runs and not seconds are counted, so that it does not matter how busy the machine is.
	findWithin = 250
	// atMost ends a search whose runs hang.
	atMost = 10 * time.Minute
)

// Check tests one controller. scenario returns it with its bug, or mended.
//
// The test fails if the bug is not found, if the story that shows the bug is not that of testdata/NAME.golden, or if
// something is found in the mended controller. The flag -update writes the story into the file.
func Check(t *testing.T, scenario func(mended bool) simtest.Scenario) {
	golden := filepath.Join("testdata", t.Name()+".golden")
	t.Run("bug", func(t *testing.T) {
		found, report := simtest.Find(t, scenario(false), simtest.Options{Runs: findWithin, Budget: atMost})
		if found == nil {
			t.Fatalf("the bug was not found in %d runs", report.Runs)
		}
		t.Logf("found within %d runs and %v", report.Runs, report.Took.Round(time.Millisecond))
		compare(t, golden, found.String())
	})
	t.Run("mended", func(t *testing.T) {
		found, report := simtest.Find(t, scenario(true), simtest.Options{Runs: *mended, Budget: atMost})
		t.Logf("tried %d runs in %v", report.Runs, report.Took.Round(time.Millisecond))
		if found != nil {
			t.Errorf("the mended controller has a finding after all: %v", found)
		}
	})
}

// compare compares a story with a file, or writes it there.
func compare(t *testing.T, file, story string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(story), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: write it with -update", err)
	}
	if story != string(want) {
		t.Errorf("the story is\n%s\n%s has\n%s", story, file, want)
	}
}
