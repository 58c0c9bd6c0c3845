package localapi

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// rewrite puts the real server's status codes into the scripts.
var rewrite = flag.Bool("rewrite", false, "write the status codes that kube-apiserver answers into the scripts")

// TestScripts plays the scripts in testdata against both servers. They hold at least 300 requests.
func TestScripts(t *testing.T) {
	scripts := readScripts(t, "testdata")
	requests := 0
	known := newLedger(known)
	t.Run("script", func(t *testing.T) {
		for _, s := range scripts {
			for _, st := range s.steps {
				if st.isRequest() {
					requests++
				}
			}
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				newPair(t, s, known).play(t)
				if *rewrite {
					s.rewrite(t)
				}
			})
		}
	})
	t.Logf("%d requests in %d scripts", requests, len(scripts))
	if t.Failed() {
		return
	}
	known.check(t)
}

// pair is both servers, with a script to play.
type pair struct {
	script     *script
	real, ours *side
	known      *ledger
	failures   int
}

// maxFailures is how many differences of one script are shown.
const maxFailures = 30

func newPair(t *testing.T, s *script, known *ledger) *pair {
	t.Helper()
	p := &pair{script: s, real: realSide(t, s), ours: ourSide(t, s), known: known}
	namespace := createNamespace(s.name)
	for _, side := range []*side{p.real, p.ours} {
		a, err := side.send(t.Context(), namespace)
		if a.code == http.StatusConflict {
			t.Fatal("the real server has played this script: run the tests of this package once a process (-count=1)")
		}
		if err != nil || a.code != http.StatusCreated {
			t.Fatalf("create the namespace on %s: %v %v", side.name, a.body, err)
		}
	}
	return p
}

func (p *pair) play(t *testing.T) {
	t.Helper()
	defer p.endWatches()
	for _, st := range p.script.steps {
		p.step(t, st)
		if p.failures >= maxFailures {
			t.Fatalf("stopped after %d differences", p.failures)
		}
	}
	if real, ours := p.real.names.order(), p.ours.names.order(); !slices.Equal(real, ours) {
		t.Errorf("resource versions are in another order\nreal: %v\nours: %v", real, ours)
	}
}

// endWatches ends what a script that failed left open.
func (p *pair) endWatches() {
	for _, s := range []*side{p.real, p.ours} {
		for _, w := range s.watches {
			w.cancel()
			<-w.ended
		}
	}
}

// step performs a step on both sides and compares the answers.
func (p *pair) step(t *testing.T, st *step) {
	t.Helper()
	ctx := t.Context()
	if st.method != "WATCH" { // a watch lasts as long as the script
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 6*patience)
		defer cancel()
	}
	began := time.Now()
	real, err := perform(ctx, p.real, st)
	if err != nil {
		t.Fatalf("%s.txt:%d: kube-apiserver: %v\n%s", p.script.name, st.line, err, st)
	}
	ours, err := perform(ctx, p.ours, st)
	if err != nil {
		t.Fatalf("%s.txt:%d: localapi: %v\n%s", p.script.name, st.line, err, st)
	}
	if took := time.Since(began); took > time.Second {
		t.Logf("%s.txt:%d took %s", p.script.name, st.line, took.Round(time.Millisecond))
	}
	if *rewrite {
		st.code = real.code
	}
	if st.code != 0 && real.code != st.code {
		p.failures++
		t.Errorf("%s.txt:%d: the script says %d, kube-apiserver answers %d\n%s\n%s", p.script.name, st.line, st.code,
			real.code, st, encode(real.body))
	}
	var unexplained []string
	request := strings.TrimSpace(st.method + " " + st.target)
	for _, d := range differences("", real.tree(), ours.tree()) {
		if !p.known.explains(p.script.name, request, d) {
			unexplained = append(unexplained, "  "+d.String())
		}
	}
	if len(unexplained) == 0 {
		return
	}
	p.failures++
	t.Errorf("%s.txt:%d: the answers differ\n%s\n%s\n%s", p.script.name, st.line, st, strings.Join(unexplained, "\n"),
		unified(real.tree(), ours.tree()))
}

// perform executes a step on one side, and returns the answer with names in place of values.
func perform(ctx context.Context, s *side, st *step) (a answer, err error) {
	switch st.method {
	case "WATCH":
		a, err = s.startWatch(ctx, st)
	case "END":
		a, err = s.endWatch(st)
		s.names.keepEvents(&a)
	case "MUTATING", "VALIDATING":
		a, err = s.configure(ctx, st)
	default:
		a, err = s.send(ctx, st)
		for err == nil && (st.retry && a.code != st.code || a.isStarting()) && ctx.Err() == nil {
			time.Sleep(50 * time.Millisecond)
			a, err = s.send(ctx, st)
		}
	}
	switch {
	case err != nil:
		return answer{}, fmt.Errorf("%s: %w", st.method, err)
	case st.codeOnly:
		return answer{code: a.code}, nil
	}
	return s.names.answer(a, st.line), nil
}
