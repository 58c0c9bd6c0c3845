package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	peer "k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/flyball-dev/flyball/workqueue"
)

// contended is a queue that others keep busy while one key wants to be served.
type contended struct {
	name string
	// add adds a key of the storm; addOne the key that is watched.
	add, addOne func(key string)
	get         func() (string, bool)
	done        func(key string)
	stop        func()
}

func contendedQueues() []contended {
	own := func(name string, order workqueue.Order[string], priority int) contended {
		q := workqueue.New(workqueue.Options[string]{Order: order})
		return contended{
			name, q.Add, func(key string) { q.AddWith(key, workqueue.AddOptions{Priority: &priority}) },
			func() (string, bool) {
				item, err := q.Get(context.Background())
				return item.Key, err == nil
			}, q.Done, q.ShutDown,
		}
	}
	theirs := func(name string, q peer.TypedInterface[string], addOne func(string)) contended {
		return contended{name, q.Add, addOne, func() (string, bool) {
			key, shutdown := q.Get()
			return key, !shutdown
		}, q.Done, q.ShutDown}
	}
	namespace := func(key string) string {
		group, _, _ := strings.Cut(key, "/")
		return group
	}
	clientGo := peer.NewTyped[string]()
	priority := priorityqueue.New[string]("fair")
	lowest, higher := priorityqueue.New[string]("low"), priorityqueue.New[string]("high")
	addWith := func(q priorityqueue.PriorityQueue[string], p int) func(string) {
		return func(key string) { q.AddWithOpts(priorityqueue.AddOpts{Priority: &p}, key) }
	}
	return []contended{
		theirs("client-go", clientGo, clientGo.Add),
		theirs("controller-runtime", priority, priority.Add),
		theirs("controller-runtime, priority 10", higher, addWith(higher, 10)),
		theirs("controller-runtime, priority -100", lowest, addWith(lowest, -100)),
		own("flyball", nil, 0),
		own("flyball, fair by namespace", workqueue.NewFairOrder(workqueue.FairOptions[string]{Group: namespace}), 0),
		own("flyball, priority 10", workqueue.NewPriorityOrder[string](workqueue.PriorityOptions{}), 10),
		own("flyball, priority -100, a step ages in 1 ms",
			workqueue.NewPriorityOrder[string](workqueue.PriorityOptions{Age: time.Millisecond}), -100),
	}
}

// TestQueueFairness prints how long one other key waits behind a storm of 100,000 keys, and beside a hot key that is
// added again each time it is done. One worker needs 1 µs for a key.
func TestQueueFairness(t *testing.T) {
	if !*ratios {
		t.Skip("run with -ratios")
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintln(w, "queue\tbehind a storm of 100k: p50 / p99\tbeside 100 hot keys: p50 / p99\t")
	again := contendedQueues()
	for i, q := range contendedQueues() {
		fmt.Fprintf(w, "%s\t%s\t%s\t\n", q.name, waitBeside(q, 100_000, false), waitBeside(again[i], 100, true))
	}
}

// waitBeside adds one key again and again while others keep the queue busy, and returns the 99th percentile of its
// waits.
func waitBeside(q contended, others int, again bool) string {
	const samples, patience = 30, 2 * time.Second
	served := make(chan time.Time, 1)
	var storm atomic.Int64 // keys of the storm that are to be worked on
	var worker sync.WaitGroup
	worker.Go(func() {
		for {
			key, ok := q.get()
			if !ok {
				return
			}
			for began := time.Now(); time.Since(began) < time.Microsecond; {
			}
			if key == "calm/one" {
				served <- time.Now()
			}
			q.done(key)
			switch {
			case key == "calm/one":
			case again:
				q.add(key)
			default:
				storm.Add(-1)
			}
		}
	})
	defer worker.Wait()
	defer q.stop()
	keys := makeKeys(others)
	for i := range keys {
		keys[i] = "storm/" + keys[i]
	}
	var waits []time.Duration
	for i := range samples {
		if i == 0 || !again {
			for storm.Load() > 0 {
				time.Sleep(time.Millisecond)
			}
			storm.Add(int64(others))
			for _, key := range keys {
				q.add(key)
			}
		}
		asked := time.Now()
		q.addOne("calm/one")
		select {
		case at := <-served:
			waits = append(waits, at.Sub(asked))
		case <-time.After(patience):
			return fmt.Sprintf("more than %v", patience)
		}
	}
	slices.Sort(waits)
	show := func(percent int) string { return waits[len(waits)*percent/100].Round(10 * time.Microsecond).String() }
	return show(50) + " / " + show(99)
}
