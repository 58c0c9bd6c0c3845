package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// every is the time between two requests, each with a connection of its own.
	every = 5 * time.Millisecond
	// timeout is how long a request may take.
	timeout = 5 * time.Second
)

// traffic asks a Service again and again.
type traffic struct {
	stop context.CancelFunc
	done sync.WaitGroup

	mu       sync.Mutex
	took     []time.Duration // of those that were answered
	answers  map[string]int
	refused  int
	failures []error // all but those that were refused
}

// figures are what a run of traffic has seen.
type figures struct {
	requests, refused, failed int
	p50, p99                  time.Duration
	rollout                   time.Duration // on average
}

// newTraffic begins to send requests to a URL.
func newTraffic(t *testing.T, url string) *traffic {
	ctx, stop := context.WithCancel(t.Context())
	x := &traffic{stop: stop, answers: map[string]int{}}
	client := &http.Client{Timeout: timeout, Transport: &http.Transport{DisableKeepAlives: true}}
	x.done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-tick.C:
				x.done.Go(func() { x.ask(client, url) })
			}
		}
	})
	t.Cleanup(func() { stop(); x.done.Wait() })
	return x
}

// ask sends one request. The end of the traffic does not cancel it.
func (x *traffic) ask(client *http.Client, url string) {
	start := time.Now()
	response, err := client.Get(url)
	var body []byte
	if err == nil {
		body, err = io.ReadAll(response.Body)
		response.Body.Close()
	}
	took := time.Since(start)
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		x.refused++
	case err == nil && response.StatusCode != http.StatusOK:
		x.failures = append(x.failures, fmt.Errorf("%s: %s", response.Status, body))
	case err != nil:
		x.failures = append(x.failures, err)
	default:
		x.took = append(x.took, took)
		x.answers[strings.TrimSpace(string(body))]++
	}
}

// end stops the traffic and returns what it has seen.
func (x *traffic) end(t *testing.T) figures {
	t.Helper()
	x.stop()
	x.done.Wait()
	if len(x.took) == 0 {
		t.Fatalf("no request was answered; %d were refused: %v", x.refused, errors.Join(x.failures...))
	}
	slices.Sort(x.took)
	at := func(percent int) time.Duration { return x.took[(len(x.took)-1)*percent/100] }
	return figures{
		requests: len(x.took) + x.refused + len(x.failures), refused: x.refused, failed: len(x.failures), p50: at(50),
		p99: at(99),
	}
}

// answered returns how often each answer was given.
func (x *traffic) answered(answer string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.answers[answer]
}

// whole fails the test if a request was not answered.
func (x *traffic) whole(t *testing.T, f figures) {
	t.Helper()
	if f.refused > 0 || f.failed > 0 {
		t.Errorf("of %d requests, %d were refused and %d failed: %v", f.requests, f.refused, f.failed,
			errors.Join(x.failures[:min(5, len(x.failures))]...))
	}
}

// table shows the figures of the controllers of both sides, and of theirs with pods without preStop.
func table(theirs, ours, control figures) string {
	row := func(name string, f figures) string {
		round := func(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
		return fmt.Sprintf("| %s | %d | %d | %d | %s | %s | %s |\n", name, f.requests, f.refused, f.failed,
			round(f.p50), round(f.p99), f.rollout.Round(100*time.Millisecond))
	}
	return "| controllers | requests | refused | failed otherwise | p50 | p99 | a rollout |\n" +
		"|---|---|---|---|---|---|---|\n" +
		row("kube-controller-manager", theirs) + row("flyball manager", ours) +
		row("kube-controller-manager, without `preStop`", control)
}
