package kubelet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/source"
)

// Name is the name of the kubelet. Its loops are called "fake-kubelet-nodes" and "fake-kubelet-pods".
const Name = "fake-kubelet"

// Options configures the kubelet. The zero value means three nodes, on which everything happens at once.
type Options struct {
	// Nodes is the number of nodes: node-1, node-2 and so on. Zero means 3.
	Nodes int
	// PodsPerNode is how many pods a node takes. Zero means 1000. That is more than a real node takes, so that a demo
	// does not run into the limit by surprise.
	PodsPerNode int
	// PodCIDRs are the ranges of the pods' addresses. A pod gets one address of each range, in this order. Empty means
	// 10.244.0.0/16.
	PodCIDRs []string
	// Delay is how long a bound pod takes to start, how long a failing pull takes, and how long a pod takes to stop
	// unless its grace period is shorter. Zero means no time at all.
	Delay time.Duration
	// Stop is the least time that a pod takes to stop, unless its grace period is shorter. It lets clients that poll
	// see the pod terminate. Zero means that only Delay counts.
	Stop time.Duration
	// NoScheduler leaves it to another scheduler to bind the pods.
	NoScheduler bool
	// Recorder records an event for a pod that fits no node, as a scheduler does. Nil records none.
	Recorder events.Recorder
	// Message is the message in the status of every pod on the nodes. Empty leaves it out.
	Message string
	// Spread is an upper bound for a random time added to Delay. The time depends only on the pod's name, the stage and
	// Seed.
	Spread time.Duration
	Seed   uint64
	// Concurrency is how many pods are worked on at once. Zero means 8. With 1, and pods created one by one, each pod
	// gets the same node and address in every run.
	Concurrency int
}

// pullable returns false for images that are meant to fail: those with the tag "bad", "broken", "404" or
// "non-existent", the last two of which Kubernetes' own tests have, or with "does-not-exist" anywhere in the name.
func pullable(image string) bool {
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return !slices.Contains([]string{"bad", "broken", "404", "non-existent"}, tag) &&
		!strings.Contains(image, "does-not-exist")
}

// fake is the kubelets of all nodes, and the scheduler. Its methods may be called from any goroutine; Run only once.
type fake struct {
	client  client.Client
	pods    informer.Informer[*corev1.Pod]
	nodes   informer.Informer[*corev1.Node]
	options Options
	// index has the number of each node by its name. Not changed after construction.
	index   map[string]int
	records *podRecords

	nodeLoop *reconcile.Controller[reconcile.Request]
	podLoop  *reconcile.Controller[reconcile.Request]
	counts   counters
}

type counters struct{ bound, started, removed, writes atomic.Int64 }

// New makes the kubelets of all nodes, and the scheduler. Nothing runs before Run, which may be called once. The caller
// runs the informers. A manager shows the loops of the kubelet among its controllers.
//
// Errors: an invalid range of addresses.
func New(c client.Client, informers *informer.Factory, o Options) (manager.Runnable, error) {
	pods, err1 := informer.For[*corev1.Pod](informers)
	nodes, err2 := informer.For[*corev1.Node](informers)
	o.Nodes, o.PodsPerNode, o.Concurrency = orDefault(o.Nodes, 3), orDefault(o.PodsPerNode, 1000),
		orDefault(o.Concurrency, 8)
	if len(o.PodCIDRs) == 0 {
		o.PodCIDRs = []string{"10.244.0.0/16"}
	}
	records, err3 := newPodRecords(o.PodCIDRs)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	k := &fake{
		client: c, pods: pods, nodes: nodes, options: o, index: make(map[string]int),
		records: records,
	}
	for i := range o.Nodes {
		k.index[nodeName(i)] = i
	}
	k.nodeLoop = reconcile.New(Name+"-nodes", reconcile.Func[reconcile.Request](k.reconcileNode),
		reconcile.Options[reconcile.Request]{})
	k.podLoop = reconcile.New(Name+"-pods", reconcile.Func[reconcile.Request](k.reconcilePod),
		reconcile.Options[reconcile.Request]{Workers: o.Concurrency})
	return k, errors.Join(
		k.nodeLoop.Watch(source.Kind(nodes, k.nodeEvents())),
		k.podLoop.Watch(source.Kind(pods, k.podEvents())),
		k.podLoop.Watch(source.Kind(nodes, k.placeEvents())),
	)
}

func orDefault(value, byDefault int) int {
	if value <= 0 {
		return byDefault
	}
	return value
}

// Name returns [Name].
func (k *fake) Name() string { return Name }

// Run maintains the nodes and works on the pods until ctx is done. It may be called once.
func (k *fake) Run(ctx context.Context) error {
	for i := range k.options.Nodes {
		k.nodeLoop.Enqueue(requestForNode(i))
	}
	var wg sync.WaitGroup
	var errs [2]error
	wg.Go(func() { errs[0] = k.nodeLoop.Run(ctx) })
	wg.Go(func() { errs[1] = k.podLoop.Run(ctx) })
	wg.Wait()
	return errors.Join(errs[:]...)
}

// Health returns nil if both loops work.
func (k *fake) Health() error { return errors.Join(k.nodeLoop.Health(), k.podLoop.Health()) }

// Loops returns the kubelet's controllers.
func (k *fake) Loops() []reconcile.Loop { return []reconcile.Loop{k.nodeLoop, k.podLoop} }
