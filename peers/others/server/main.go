// Server is the embedded API as a process of its own: its memory can be told from that of the suite that uses it.
//
// It writes a kubeconfig to the path that it is given, prints a line, serves until its standard input ends, and then
// prints how many requests it was sent, by verb, as JSON. It holds the answer to each write back for the duration that
// it is given.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/localapi/envtest"
	"github.com/flyball-dev/flyball/localapi/gate"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() (err error) {
	if len(os.Args) != 3 {
		return errors.New("usage: server KUBECONFIG DELAY")
	}
	delay, err := time.ParseDuration(os.Args[2])
	if err != nil {
		return err
	}
	requests := &counter{byVerb: map[string]int{}}
	no := false
	environment := &envtest.Environment{UseExistingCluster: &no, Gate: gate.Funcs{
		OnRequest: requests.count,
		OnAnswer: func(ctx context.Context, r *gate.Request, _ gate.Answer) gate.Verdict {
			switch r.Verb {
			case "create", "update", "patch", "delete":
				time.Sleep(delay)
			}
			return gate.Verdict{}
		},
	}}
	if _, err := environment.Start(); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, environment.Stop(), json.NewEncoder(os.Stdout).Encode(requests.byVerb))
	}()
	if err := os.WriteFile(os.Args[1], environment.KubeConfig, 0o600); err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// counter counts requests by verb.
type counter struct {
	mu     sync.Mutex
	byVerb map[string]int
}

func (c *counter) count(_ context.Context, r *gate.Request) gate.Verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byVerb[r.Verb]++
	return gate.Verdict{}
}
