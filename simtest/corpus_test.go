package simtest

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
)

// twice builds a program that creates a ConfigMap with a generated name, and then writes down that it has done so. A
// process that is killed in between is followed by one that creates a second one. The mended one chooses the name.
func twice(mended bool) func(*Env) (Program, error) {
	return func(e *Env) (Program, error) {
		c, err := client.New(e.Config(), client.Options{})
		return ProgramFunc(func(ctx context.Context) error {
			source := sources()[0]
			if err := client.IgnoreAlreadyExists(c.Create(ctx, source)); err != nil {
				return err
			}
			if err := c.Get(ctx, client.ObjectKeyFromObject(source), source); err != nil {
				return err
			}
			if source.Annotations["made"] == "" {
				child := &corev1.ConfigMap{}
				child.Namespace, child.GenerateName = "default", "child-"
				if mended {
					child.Name, child.GenerateName = "child", ""
				}
				if err := c.Create(ctx, child); client.IgnoreAlreadyExists(err) != nil {
					return err
				}
				source.Annotations = map[string]string{"made": "yes"}
				if err := c.Update(ctx, source); err != nil {
					return err
				}
			}
			<-ctx.Done()
			return nil
		}), err
	}
}

// search is Check, but returns the checker with its findings instead of failing the test.
func search(t *testing.T, build func(*Env) (Program, error), o Options) *checker {
	t.Helper()
	c := newChecker(t, &Scenario{Build: build, Script: func(u *User) { u.Settle() }}, o)
	c.keeps = true
	c.check()
	return c
}

// TestCorpusComesFirst: a finding is kept, found again before anything else is tried, and not found in the mended
// program. Replaying its token comes to the same.
func TestCorpusComesFirst(t *testing.T) {
	t.Chdir(t.TempDir())
	first := search(t, twice(false), Options{Budget: time.Minute})
	if len(first.found) != 1 || first.found[0].Rule != RuleEnd || first.tally.Runs == 0 {
		t.Fatalf("%v, %d runs", first.found, first.tally.Runs)
	}
	token := first.found[0].plan.token()
	if kept, err := os.ReadFile(first.corpusFile()); err != nil || !strings.Contains(string(kept), "\n"+token+"\n") {
		t.Fatalf("%q, %v, want %q", kept, err, token)
	}
	again := search(t, twice(false), Options{Budget: time.Minute})
	if len(again.found) != 1 || again.found[0].String() != first.found[0].String() || again.tally.Runs != 0 {
		t.Errorf("found %v after %d runs, want %v", again.found, again.tally.Runs, first.found)
	}
	mended := search(t, twice(true), Options{Budget: time.Minute, Runs: 10})
	if len(mended.found) != 0 || mended.tally.Runs != 10 {
		t.Errorf("found %v in %d runs", mended.found, mended.tally.Runs)
	}

	defer func(token string) { *replayFlag = token }(*replayFlag)
	*replayFlag = token
	if c := search(t, twice(false), Options{}); len(c.found) != 1 || c.found[0].String() != first.found[0].String() {
		t.Errorf("the token replays as %v, want %v", c.found, first.found)
	}
	if c := search(t, twice(true), Options{}); len(c.found) != 0 {
		t.Errorf("the token has a finding of the mended program: %v", c.found)
	}
}

// TestReport: the report tells of every stage, also of those that were not reached, and of every fault at every write.
func TestReport(t *testing.T) {
	t.Chdir(t.TempDir())
	c := search(t, twice(true), Options{Budget: time.Minute, Runs: 26})
	table, matrix := c.table(time.Second), c.matrix()
	for _, want := range []string{
		`the run without faults has 3 writes, 1 reads and 0 events\n`, `\n +25 +25 .* one fault at each write\n`,
		`\n +1 +5 .* a restart on a replica that lags\n`, `\n +0 +3 .* a slow watch from each write\n`,
		`\n +0 +258 .* two faults\n`, `\n26 runs in 1s of 1m0s\n`,
		`not tried: 270 of the above, a paused leader \(Scenario.Leases is not set\), faults outside`,
	} {
		if !regexp.MustCompile(want).MatchString(table) {
			t.Errorf("there is no %q in\n%s", want, table)
		}
	}
	for _, want := range []string{
		`C- +C\+ +CS +L +T +B +R +409 +429 +500 +W +S +P +at write\n`,
		`\n +1 +1 +1 +1 +1 +1 +1 +0 +1 +1 +0 +0 +0 +1, create configmaps default\n`,
		`\n +1 +1 +0 +1 +1 +1 +1 +1 +1 +1 +0 +0 +0 +3, update configmaps default/source-0\n`,
	} {
		if !regexp.MustCompile(want).MatchString(matrix) {
			t.Errorf("there is no %q in\n%s", want, matrix)
		}
	}
}
