package differential

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// asker asks processes about themselves. Certificates of theirs are their own.
var asker = &http.Client{
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
}

// ask is what a process answers.
func ask(url string) ([]byte, error) {
	resp, err := asker.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, resp.Status, body)
	}
	return body, err
}

func number(t *testing.T, text, pattern string) int {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("there is no %s in\n%s", pattern, text)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// queued finds how many keys were ever added to the queues of the compared controllers, and how many times work on
// one was done. The names are kube-controller-manager's and ours.
var queued = regexp.MustCompile(
	`(?m)^workqueue_(adds_total|work_duration_seconds_count)\{name="(?:deployment|replicaset|endpoint|endpoint_slice|[a-z]+-controller|garbage_collector_[a-z_]+)"\} (\S+)$`)

// outstanding is how many keys wait in the queues of a process, or are worked on. Those whose time has not come do
// not count.
func outstanding(url string) (int, error) {
	body, err := ask(url + "/metrics")
	if err != nil {
		return 0, err
	}
	left := 0
	for _, m := range queued.FindAllSubmatch(body, -1) {
		n, err := strconv.ParseFloat(string(m[2]), 64)
		if err != nil {
			return 0, err
		}
		if string(m[1]) == "adds_total" {
			left += int(n)
		} else {
			left -= int(n)
		}
	}
	return left, nil
}

// drained waits until nothing is outstanding, and reports whether that took any time.
func drained(ctx context.Context, url string) (waited bool, err error) {
	for {
		n, err := outstanding(url)
		if err != nil || n == 0 {
			return waited, err
		}
		waited = true
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return waited, fmt.Errorf("%d keys are still worked on: %w", n, ctx.Err())
		}
	}
}
