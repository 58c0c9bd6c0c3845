// Package controllers compares decisions of our controllers with those of the packages that kube-controller-manager
// is made of, in this process. It holds only tests.
package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	upstream "k8s.io/endpointslice"
	"k8s.io/endpointslice/topologycache"
	"k8s.io/endpointslice/util"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/controllers/endpointslice"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
)

const (
	namespace = "default"
	nodes     = 6
)

// FuzzEndpointSlices changes a Service and its pods at random. After each change both reconcilers set out from the
// same slices, the real one and ours, and must come to the same: as many slices of the same sizes with the same
// labels and owners, by as many writes of each kind, with the same endpoints in them. Which endpoint is in which
// slice is chance there.
//
// Source: k8s.io/endpointslice v0.37.2 reconciler.go
func FuzzEndpointSlices(f *testing.F) {
	for seed := range uint64(12) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, seed)
			for step := range 8 {
				p.change()
				theirs, ours := p.theirs(), p.ours()
				if theirs != ours {
					t.Fatalf("seed %d, step %d: theirs\n%s\nours\n%s", seed, step, theirs, ours)
				}
			}
			if err := p.server.Close(); err != nil {
				t.Error(err)
			}
		})
	})
}

// pair is an API server on which ours works, and from which theirs gets what it sees.
type pair struct {
	t       *testing.T
	ctx     context.Context
	random  *rand.Rand
	server  *localapi.Server
	log     *audit.Log
	client  kubernetes.Interface
	maximum int
	next    int
	// shared: hints are given by the zones' shares of the CPUs. Which endpoint gets which is chance, too.
	shared bool
	// fresh: there was no endpoint before, so no hint is kept, and how many endpoints each zone gets is no chance.
	fresh bool
}

func newPair(t *testing.T, seed uint64) *pair {
	log := &audit.Log{}
	server, err := localapi.New(localapi.Options{Audit: log})
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{
		t: t, ctx: t.Context(), random: rand.New(rand.NewPCG(seed, 0)), server: server, log: log,
		client: kubernetes.NewForConfigOrDie(server.RESTConfig()),
	}
	p.maximum = 1 + p.random.IntN(5)
	for i := range nodes {
		n := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name:   fmt.Sprint("n", i),
				Labels: map[string]string{corev1.LabelTopologyZone: fmt.Sprint("z", i%3)},
			},
		}
		_, err := p.client.CoreV1().Nodes().Create(p.ctx, n, metav1.CreateOptions{})
		p.must(err)
		status := fmt.Sprintf(
			`{"status":{"allocatable":{"cpu":"%d"},"conditions":[{"type":"Ready","status":"True"}]}}`, 1+i,
		)
		_, err = p.client.CoreV1().Nodes().Patch(p.ctx, n.Name, types.MergePatchType, []byte(status),
			metav1.PatchOptions{}, "status")
		p.must(err)
	}
	_, err = p.client.CoreV1().Services(namespace).Create(p.ctx, p.service(), metav1.CreateOptions{})
	p.must(err)
	return p
}

func (p *pair) service() *corev1.Service {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"team": "a"}}}
	svc.Spec.Selector = map[string]string{"app": "web"}
	svc.Spec.Ports = []corev1.ServicePort{
		{Name: "http", Port: 80, TargetPort: intstr.FromString("http")},
		{Name: "admin", Port: 81, TargetPort: intstr.FromInt32(8081)},
	}
	switch p.random.IntN(6) {
	case 0:
		svc.Spec.ClusterIP = corev1.ClusterIPNone
	case 1:
		svc.Spec.PublishNotReadyAddresses = true
	case 2:
		svc.Spec.TrafficDistribution = ptr.To("PreferSameNode")
	case 3:
		svc.Spec.TrafficDistribution = ptr.To("PreferClose")
	case 4:
		svc.Annotations, p.shared = map[string]string{corev1.AnnotationTopologyMode: "Auto"}, true
	}
	return svc
}

func (p *pair) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// change adds, changes and deletes some pods, and now and then something of the Service.
func (p *pair) change() {
	for range p.random.IntN(8) {
		p.addPod()
	}
	for _, pod := range p.pods() {
		var patch string
		subresource := []string{"status"}
		switch p.random.IntN(30) {
		case 0, 1, 2, 3:
			p.must(p.client.CoreV1().Pods(namespace).Delete(p.ctx, pod.Name, *metav1.NewDeleteOptions(0)))
		case 4, 5:
			p.must(p.client.CoreV1().Pods(namespace).Delete(p.ctx, pod.Name, metav1.DeleteOptions{}))
		case 6, 7:
			patch = `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`
		case 8:
			patch = `{"status":{"phase":"Failed"}}`
		case 9:
			patch = `{"status":{"podIP":"10.1.0.1","podIPs":[{"ip":"10.1.0.1"}]}}`
		case 10:
			patch, subresource = `{"metadata":{"labels":{"app":"other"}}}`, nil
		}
		if patch != "" {
			_, err := p.client.CoreV1().Pods(namespace).Patch(p.ctx, pod.Name, types.MergePatchType, []byte(patch),
				metav1.PatchOptions{}, subresource...)
			p.must(err)
		}
	}
	var patch string
	switch p.random.IntN(12) {
	case 0:
		patch = fmt.Sprintf(`{"metadata":{"labels":{"team":"%d"}}}`, p.random.IntN(3))
	case 1:
		patch = fmt.Sprintf(`{"spec":{"publishNotReadyAddresses":%t}}`, p.random.IntN(2) == 0)
	case 2:
		patch = fmt.Sprintf(`{"spec":{"ports":[{"port":80,"targetPort":%d}]}}`, 8080+p.random.IntN(2))
	}
	if patch != "" {
		_, err := p.client.CoreV1().Services(namespace).Patch(p.ctx, "web", types.MergePatchType, []byte(patch),
			metav1.PatchOptions{})
		p.must(err)
	}
}

// addPod makes a pod that is ready, at one of two numbers of the port http, on a node that is there or not.
func (p *pair) addPod() {
	p.next++
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", p.next), Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{NodeName: fmt.Sprint("n", p.random.IntN(nodes)), Containers: []corev1.Container{{
			Name: "c", Image: "i", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		}}},
	}
	switch p.random.IntN(12) {
	case 0, 1:
		pod.Spec.Containers[0].Ports[0].ContainerPort = 9090
	case 2:
		pod.Spec.Containers[0].Ports = nil
	case 3:
		pod.Spec.NodeName = "lost"
	case 4:
		pod.Spec.Hostname, pod.Spec.Subdomain = "h", "web"
	}
	_, err := p.client.CoreV1().Pods(namespace).Create(p.ctx, pod, metav1.CreateOptions{})
	p.must(err)
	status := fmt.Sprintf(
		`{"status":{"phase":"Running","podIP":"10.0.0.%[1]d","podIPs":[{"ip":"10.0.0.%[1]d"}],"conditions":[{"type":"Ready","status":"True"}]}}`, p.next,
	)
	_, err = p.client.CoreV1().Pods(namespace).Patch(p.ctx, pod.Name, types.MergePatchType, []byte(status),
		metav1.PatchOptions{}, "status")
	p.must(err)
}

func (p *pair) pods() []*corev1.Pod {
	list, err := p.client.CoreV1().Pods(namespace).List(p.ctx, metav1.ListOptions{})
	p.must(err)
	var pods []*corev1.Pod
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return pods
}

func slicesOf(ctx context.Context, c kubernetes.Interface) ([]*discoveryv1.EndpointSlice, error) {
	list, err := c.DiscoveryV1().EndpointSlices(namespace).List(ctx,
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=web"})
	if err != nil {
		return nil, err
	}
	var found []*discoveryv1.EndpointSlice
	for i := range list.Items {
		found = append(found, &list.Items[i])
	}
	return found, nil
}

// theirs is what the real reconciler makes of what there is, and how.
func (p *pair) theirs() string {
	p.t.Helper()
	svc, err := p.client.CoreV1().Services(namespace).Get(p.ctx, "web", metav1.GetOptions{})
	p.must(err)
	existing, err := slicesOf(p.ctx, p.client)
	p.must(err)
	p.fresh = !slices.ContainsFunc(existing, func(s *discoveryv1.EndpointSlice) bool { return len(s.Endpoints) > 0 })
	list, err := p.client.CoreV1().Nodes().List(p.ctx, metav1.ListOptions{})
	p.must(err)
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	topology, topologyNodes := topologycache.NewTopologyCache(), []*corev1.Node{}
	for i := range list.Items {
		p.must(store.Add(&list.Items[i]))
		topologyNodes = append(topologyNodes, &list.Items[i])
	}
	topology.SetNodes(klog.Background(), topologyNodes)
	var selected []*corev1.Pod
	for _, pod := range p.pods() {
		if pod.Labels["app"] == "web" {
			selected = append(selected, pod)
		}
	}
	var objects []runtime.Object
	for _, s := range existing {
		objects = append(objects, s.DeepCopy())
	}
	client := fake.NewSimpleClientset(objects...)
	made := 0
	client.PrependReactor("create", "endpointslices", func(action clienttesting.Action) (bool, runtime.Object, error) {
		made++
		action.(clienttesting.CreateAction).GetObject().(*discoveryv1.EndpointSlice).Name = fmt.Sprint("made-", made)
		return false, nil, nil
	})
	r := upstream.NewReconciler(client, corelisters.NewNodeLister(store), int32(p.maximum),
		util.NewEndpointSliceTracker(), topology,
		record.NewFakeRecorder(100), endpointslice.ManagedBy, upstream.WithPreferSameTrafficDistributionEnabled(true))
	if err := r.Reconcile(klog.Background(), svc, selected, existing, time.Time{}); err != nil &&
		!strings.Contains(err.Error(), "Node lost Not Found") {
		p.t.Fatal(err)
	}
	writes := map[string]int{}
	for _, action := range client.Actions() {
		writes[action.GetVerb()]++
	}
	result, err := slicesOf(p.ctx, client)
	p.must(err)
	return p.describe(writes, result)
}

// ours is what our controller makes of it: it is started, and stopped when it has nothing more to do.
func (p *pair) ours() string {
	p.t.Helper()
	config := p.server.RESTConfig()
	config.UserAgent = endpointslice.Name
	factory, err := informer.NewFactory(config, informer.FactoryOptions{})
	p.must(err)
	writer, err := client.New(config, client.Options{Informers: factory})
	p.must(err)
	sender, err := events.New(config, events.Options{})
	p.must(err)
	controller, err := endpointslice.New(writer, factory, sender.Recorder(endpointslice.Component),
		endpointslice.Options{MaxEndpointsPerSlice: p.maximum})
	p.must(err)
	p.log.Reset()
	ctx, stop := context.WithCancel(p.ctx)
	done := make(chan error, 2)
	go func() { done <- factory.Run(ctx) }()
	go func() { done <- controller.Run(ctx) }()
	synctest.Wait()
	stop()
	for range 2 {
		p.must(<-done)
	}
	writes := map[string]int{}
	for _, e := range p.log.Entries(func(e audit.Entry) bool { return e.Mutates() && e.Resource == "endpointslices" }) {
		writes[e.Verb]++
	}
	result, err := slicesOf(p.ctx, p.client)
	p.must(err)
	return p.describe(writes, result)
}

// describe returns equal texts for equivalent objects.
func (p *pair) describe(writes map[string]int, result []*discoveryv1.EndpointSlice) string {
	var lines []string
	if p.shared {
		// The real one writes slices again whose hints do not fit, also where they come out the same.
		writes = map[string]int{"create": writes["create"], "delete": writes["delete"]}
	}
	zones := map[string]int{}
	for _, s := range result {
		s.Ports = append([]discoveryv1.EndpointPort{}, s.Ports...) // null is the same
		line, _ := json.Marshal(
			[]any{s.AddressType, s.Ports, len(s.Endpoints), s.Labels, s.OwnerReferences, s.GenerateName},
		)
		lines = append(lines, string(line))
		ports, _ := json.Marshal(s.Ports)
		for _, e := range s.Endpoints {
			if p.shared && e.Hints != nil {
				zones[e.Hints.ForZones[0].Name]++
				e.Hints = nil
			}
			line, _ := json.Marshal(e)
			lines = append(lines, string(ports)+string(line))
		}
	}
	slices.Sort(lines)
	if p.shared && !p.fresh {
		// How many endpoints a zone gets depends on the hints that are kept, and these on the slices' order.
		zones = map[string]int{"zones with endpoints": len(zones)}
	}
	return fmt.Sprintf("%v %v\n%s", writes, zones, strings.Join(lines, "\n"))
}
