//lint:file-ignore SA1019 Endpoints are deprecated, but one of the controllers shown here handles them.

package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/cmd/flyball/nodes"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
)

// state is a snapshot of the story's objects in the caches.
type state struct {
	deployment *appsv1.Deployment // nil if there is none
	endpoint   *corev1.Endpoints
	slices     []*discoveryv1.EndpointSlice
	service    bool
	sets       []*appsv1.ReplicaSet
	pods       []*corev1.Pod
	leader     string // empty if no program leads
}

// leads returns in words who leads.
func (s state) leads() string { return cmp.Or(s.leader, "nobody") + " leads" }

// rolledOut returns the progress towards a Deployment that is complete at the given size, with only the given image.
func (s state) rolledOut(replicas int, image string) progress {
	p := progress{want: replicas, missing: "a Deployment"}
	d := s.deployment
	if d == nil {
		return p
	}
	status := d.Status
	p.have = int(min(status.UpdatedReplicas, status.AvailableReplicas))
	p.text = fmt.Sprintf("%d of %d available", status.AvailableReplicas, replicas)
	switch {
	case status.ObservedGeneration < d.Generation:
		p.have, p.missing = 0, fmt.Sprintf("generation %d observed, is %d", d.Generation, status.ObservedGeneration)
	case int(status.UpdatedReplicas) != replicas:
		p.missing = fmt.Sprintf("%d replicas updated, are %d", replicas, status.UpdatedReplicas)
	case int(status.Replicas) != replicas:
		p.missing = fmt.Sprintf("%d replicas in all, are %d", replicas, status.Replicas)
	case int(status.AvailableReplicas) != replicas:
		p.missing = fmt.Sprintf("%d replicas available, are %d", replicas, status.AvailableReplicas)
	default:
		p.missing = ""
	}
	for _, set := range s.sets {
		if got := set.Spec.Template.Spec.Containers[0].Image; p.missing == "" && *set.Spec.Replicas > 0 &&
			got != image {
			p.missing = fmt.Sprintf("only %s running, %s still has %d of %s", image, set.Name, *set.Spec.Replicas, got)
		}
	}
	return p
}

// stuck returns the progress towards a rollout of bad that has gone as far as maxSurge and maxUnavailable allow, and no
// further.
func (s state) stuck(bad, good string) progress {
	p := progress{missing: "a Deployment"}
	if s.deployment == nil {
		return p
	}
	// The defaults are 25 % of 5: a surge of 2 (rounded up) and 1 unavailable (rounded down).
	const surge, unavailable = 2, 1
	oldWant, newWant := size-unavailable, surge+unavailable
	waiting := 0
	for _, pod := range s.pods {
		if pod.Spec.Containers[0].Image == bad && pulling(pod) {
			waiting++
		}
	}
	p.have, p.want = waiting, newWant
	available := int(s.deployment.Status.AvailableReplicas)
	p.text = fmt.Sprintf("%d available, %d cannot start", available, waiting)
	oldHas, newHas := s.replicas(good), s.replicas(bad)
	if oldHas == oldWant && newHas == newWant && waiting == newWant && available == oldWant {
		p.missing = ""
		return p
	}
	p.missing = fmt.Sprintf("%d of %s, %d of %s that cannot start, %d available; are %d, %d (%d cannot start), %d",
		oldWant, good, newWant, bad, oldWant, oldHas, newHas, waiting, available)
	return p
}

// replicas returns the number of replicas that the ReplicaSets with an image ask for.
func (s state) replicas(image string) int {
	n := 0
	for _, set := range s.sets {
		if set.Spec.Template.Spec.Containers[0].Image == image {
			n += int(*set.Spec.Replicas)
		}
	}
	return n
}

// pulling reports whether a pod's image could not be pulled.
func pulling(pod *corev1.Pod) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Waiting != nil &&
			(c.State.Waiting.Reason == "ErrImagePull" || c.State.Waiting.Reason == "ImagePullBackOff") {
			return true
		}
	}
	return false
}

// endpoints returns the progress towards the wanted number of ready addresses, and no others, in both Endpoints and
// EndpointSlices.
func (s state) endpoints(want int) progress {
	p := progress{want: want, missing: "Endpoints of the Service"}
	if s.endpoint == nil {
		return p
	}
	notReady := 0
	for _, subset := range s.endpoint.Subsets {
		p.have += len(subset.Addresses)
		notReady += len(subset.NotReadyAddresses)
	}
	p.text = fmt.Sprintf("%d of %d addresses ready", p.have, want)
	p.missing = ""
	if p.have != want || notReady != 0 {
		p.missing = fmt.Sprintf("%d ready addresses, are %d ready and %d not", want, p.have, notReady)
	} else if ready, all := s.sliced(); ready != want || all != want {
		p.missing = fmt.Sprintf("%d ready endpoints in EndpointSlices, are %d ready and %d not", want, ready, all-ready)
	}
	return p
}

// sliced counts the endpoints in EndpointSlices.
func (s state) sliced() (ready, all int) {
	for _, slice := range s.slices {
		for i := range slice.Endpoints {
			all++
			if r := slice.Endpoints[i].Conditions.Ready; r != nil && *r {
				ready++
			}
		}
	}
	return ready, all
}

// gone returns the progress towards a state in which no object of the story is left.
func (s state) gone() progress {
	left := len(s.sets) + len(s.pods) + len(s.slices)
	for _, there := range []bool{s.deployment != nil, s.service, s.endpoint != nil} {
		if there {
			left++
		}
	}
	p := progress{left: left, text: "nothing left"}
	if left > 0 {
		p.text = fmt.Sprintf("%d objects left", left)
		p.missing = fmt.Sprintf("no object, are %d: %d pods, %d ReplicaSets, %d EndpointSlices; Deployment: %t, "+
			"Service: %t, Endpoints: %t",
			left, len(s.pods), len(s.sets), len(s.slices), s.deployment != nil, s.service, s.endpoint != nil)
	}
	return p
}

// revision returns the revision number of a Deployment or ReplicaSet, or 0 if it has none.
func revision(obj metav1.Object) int {
	n, err := strconv.Atoi(obj.GetAnnotations()["deployment.kubernetes.io/revision"])
	if err != nil {
		return 0
	}
	return n
}

// stillFor is how long a rollout on a cluster with a real kubelet must stand still to count as stuck.
const stillFor = 5 * time.Second

// runRemote plays the story on a cluster that is already there, in a namespace of its own.
func runRemote(ctx context.Context, o Options, images [2]string) error {
	config := nodes.Quiet(rest.AddUserAgent(rest.CopyConfig(o.Cluster), "demo"))
	c, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	namespace, err := openNamespace(ctx, c, o.Timeout)
	if err != nil {
		return err
	}
	err = playRemote(ctx, o, config, c, newStory(namespace, images, stillFor))
	// The namespace goes even if the user has stopped the demo.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.Timeout)
	defer cancel()
	e := c.Delete(ending, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if e != nil {
		err = errors.Join(err, fmt.Errorf("delete the namespace %s: %w", namespace, e))
	}
	return err
}

// openNamespace creates a namespace and returns its name.
func openNamespace(ctx context.Context, c client.Client, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "flyball-demo-"}}
	if err := c.Create(ctx, n); err != nil {
		return "", fmt.Errorf("create a namespace: %w", err)
	}
	return n.Name, nil
}

// playRemote plays s while a manager without controllers fills the caches that the story reads.
func playRemote(ctx context.Context, o Options, config *rest.Config, c client.Client, s story) error {
	restricted := informer.FactoryOptions{Namespaces: []string{s.namespace}}
	m, err := manager.New(config, manager.Options{Informers: restricted})
	if err != nil {
		return err
	}
	changed := make(chan struct{}, 1) // see director
	caches, err := newView(m.Informers(), changed)
	if err != nil {
		return err
	}
	start := time.Now()
	fmt.Fprintf(o.Out, `The cluster at %s, with its own controllers and kubelets.
Behind each step: the watch events that it took.

`, config.Host)
	d := director{
		client: c, look: func() state { return caches.look(s.namespace) }, changed: changed,
		counts: func() counts { return counts{watch: watched(m), watchOnly: true} },
		screen: newScreen(o.Out), timeout: o.Timeout, board: &board{},
	}
	err = during(ctx, m, o.Timeout, func(ctx context.Context) error { return d.play(ctx, s.steps()) })
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.Out, "\ndemo: ok: %d watch events in %s\n", watched(m),
		time.Since(start).Round(10*time.Millisecond))
	return err
}

// during runs m and calls play when the caches are filled, which may take as long as timeout.
func during(ctx context.Context, m *manager.Manager, timeout time.Duration, play func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	ended := make(chan error, 1) // receives what Run returns
	go func() {
		err := m.Run(running)
		stop(err)
		ended <- err
	}()
	filling, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := m.Informers().WaitForSync(filling)
	if err == nil {
		err = play(ctx)
	} else if ctx.Err() == nil {
		err = fmt.Errorf("the caches are not filled after %s: %w", timeout, m.Ready())
	}
	end()
	return errors.Join(err, <-ended)
}
