package endpointslice

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flyball-dev/flyball/controllers/endpointslice/internal/hints"
	"github.com/flyball-dev/flyball/controllers/internal/sliceset"
)

// FuzzPlan changes pods, labels, hints and settings at random, carries out each plan, and checks that:
//
//   - every pod to publish is there, in its state, exactly once per family, at its own ports;
//   - no slice exceeds the maximum;
//   - every write changes something, and without hints by shares there are no more writes than writesNeeded returns;
//   - the same plan again writes nothing;
//   - the objects in the caches do not change.
func FuzzPlan(f *testing.F) {
	for seed := range uint64(15) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := newWorld(t, seed)
		for range 12 {
			w.change()
			w.step()
		}
	})
}

// world is a Service, its pods, and the slices that the plans have made.
type world struct {
	t       *testing.T
	random  *rand.Rand
	svc     *corev1.Service
	pods    map[string]*corev1.Pod
	next    int
	maximum int
	slices  existing
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 0)), pods: map[string]*corev1.Pod{}}
	w.maximum = 1 + w.random.IntN(5)
	w.svc = service(ports(servicePort("http", intstr.FromString("http"))))
	for _, f := range []func(*corev1.Service){dual, headless, published, topology, distribution("PreferSameNode")} {
		if w.random.IntN(4) == 0 {
			f(w.svc)
		}
	}
	return w
}

// change is one step of the world.
func (w *world) change() {
	for range w.random.IntN(8) {
		p := pod(w.next, func(p *corev1.Pod) { p.Spec.NodeName = fmt.Sprintf("n%d", w.random.IntN(6)) })
		if w.random.IntN(5) == 0 {
			named(9090)(p)
		}
		w.pods[p.Name], w.next = p, w.next+1
	}
	for _, name := range w.names() {
		p := w.pods[name].DeepCopy() // the old one stays as it was in whatever refers to it
		w.pods[name] = p
		switch w.random.IntN(30) {
		case 0, 1, 2, 3:
			delete(w.pods, name)
		case 4, 5:
			unready(p)
		case 6:
			deleting(p)
		case 7:
			ended(p)
		case 8:
			lost(p)
		case 9:
			p.Status.PodIPs = p.Status.PodIPs[:1]
		case 10:
			p.UID += "'"
		}
	}
	svc := w.svc.DeepCopy()
	switch w.random.IntN(20) {
	case 0:
		svc.Labels = map[string]string{"team": fmt.Sprint(w.random.IntN(3))}
	case 1:
		svc.Annotations = nil
	case 2:
		svc.UID += "'"
	case 3:
		distribution("PreferClose")(svc)
	}
	w.svc = svc
}

func (w *world) names() []string {
	return slices.Sorted(maps.Keys(w.pods))
}

func (w *world) observe() observed {
	var pods []*corev1.Pod
	for _, name := range w.names() {
		pods = append(pods, w.pods[name])
	}
	o := seen(w.svc, pods, w.slices...)
	o.maxEndpoints = w.maximum
	return o
}

// step makes a plan, carries it out, checks both, and plans again.
func (w *world) step() {
	o := w.observe()
	var before existing
	for _, s := range o.slices {
		before = append(before, s.DeepCopy())
	}
	got := plan(o)
	if !equality.Semantic.DeepEqual(before, o.slices) {
		w.t.Fatal("the plan changed the cache")
	}
	w.checkWrites(o, got)
	w.carryOut(got)
	w.checkOutcome()
	again := w.observe()
	again.hinted = got.hinted
	if second := plan(again); second.writes() != "" {
		w.t.Fatalf("the same again writes:\n%s\nafter:\n%s", second.writes(), got.writes())
	}
}

// checkWrites checks the writes of a plan; see [FuzzPlan].
func (w *world) checkWrites(o observed, got changes) {
	byName := map[string]*discoveryv1.EndpointSlice{}
	for _, s := range o.slices {
		byName[s.Name] = s
	}
	writes := 0
	for _, b := range got.batches {
		writes += len(b.Create) + len(b.Update) + len(b.Remove)
		for _, s := range b.Update {
			if equality.Semantic.DeepEqual(s, byName[s.Name]) {
				w.t.Fatalf("%s is written as it is: %s", s.Name, describe(s))
			}
		}
		for _, s := range slices.Concat(b.Create, b.Update) {
			if old := byName[s.Name]; len(s.Endpoints) > w.maximum &&
				(old == nil || len(s.Endpoints) > len(old.Endpoints)) {
				w.t.Fatalf("%q has %d endpoints, more than %d", s.Name, len(s.Endpoints), w.maximum)
			}
		}
	}
	if limit := w.writesNeeded(o); !hints.WantsTopology(w.svc) && writes > limit {
		w.t.Fatalf("%d writes, where %d would do:\n%s", writes, limit, got.writes())
	}
}

// writesNeeded returns how many writes carry out a change without moving an endpoint: one for each slice that is wrong,
// and one for each slice that the new endpoints fill.
func (w *world) writesNeeded(o observed) int {
	n := 0
	h := hints.Traffic(w.svc)
	fresh := map[string]int{} // by group
	right := map[string]discoveryv1.Endpoint{}
	p := &planner{observed: o}
	p.findMembers()
	for _, kind := range addressTypes(w.svc) {
		fresh[string(kind)] = 1 // the placeholder
		for _, m := range p.members {
			if m.pod == nil {
				continue
			}
			if e, ok := endpointOf(w.svc, m.pod, m.node, kind); ok {
				e.Hints = h(&e)
				right[string(kind)+m.key+m.pod.Name] = e
				fresh[string(kind)+m.key]++
			}
		}
	}
	for _, s := range o.slices {
		wrong := !sliceset.OwnedBy(s, "Service", w.svc.UID) || !labelsUpToDate(s, w.svc) ||
			!slices.Contains(addressTypes(w.svc), s.AddressType) || len(s.Endpoints) == 0
		group := string(s.AddressType) + sliceset.PortsKey(s.Ports)
		for _, e := range s.Endpoints {
			want, found := right[group+e.TargetRef.Name]
			if found && sliceset.OwnedBy(s, "Service", w.svc.UID) {
				fresh[group]--
			}
			wrong = wrong || !found || !equality.Semantic.DeepEqual(e, want)
		}
		if wrong {
			n++
		}
	}
	for _, missing := range fresh {
		n += (missing + w.maximum - 1) / w.maximum
	}
	return n
}

// carryOut does what the API server would.
func (w *world) carryOut(c changes) {
	for _, b := range c.batches {
		for _, s := range slices.Concat(b.Update, b.Remove) {
			w.slices = slices.DeleteFunc(slices.Clone(w.slices),
				func(old *discoveryv1.EndpointSlice) bool { return old.Name == s.Name })
		}
		for _, s := range b.Create {
			w.next++
			s.Name, s.UID = fmt.Sprintf("web-%d", w.next), types.UID(fmt.Sprint(w.next))
		}
		w.slices = slices.Concat(w.slices, b.Update, b.Create)
	}
}

// checkOutcome checks the slices after a plan; see [FuzzPlan].
func (w *world) checkOutcome() {
	for _, kind := range addressTypes(w.svc) {
		places := map[string]int{}
		kept := 0
		for _, s := range w.slices {
			if s.AddressType != kind {
				continue
			}
			kept++
			if !sliceset.OwnedBy(s, "Service", w.svc.UID) || !labelsUpToDate(s, w.svc) ||
				metav1.GetControllerOf(s) == nil {
				w.t.Fatalf("metadata %+v", s.ObjectMeta)
			}
			for i := range s.Endpoints {
				w.checkEndpoint(s, &s.Endpoints[i])
				places[s.Endpoints[i].TargetRef.Name]++
			}
		}
		if kept == 0 {
			w.t.Fatalf("%s has no slice", kind)
		}
		for _, name := range w.names() {
			want := 0
			if w.isPublished(w.pods[name], kind) {
				want = 1
			}
			if places[name] != want {
				w.t.Fatalf("%s pod %s is in %d places, want %d", kind, name, places[name], want)
			}
			delete(places, name)
		}
		if len(places) > 0 {
			w.t.Fatalf("pods that are no more: %v", places)
		}
	}
}

// isPublished states the rule independently of the code under test.
func (w *world) isPublished(p *corev1.Pod, kind discoveryv1.AddressType) bool {
	hasFamily := kind == discoveryv1.AddressTypeIPv4 || len(p.Status.PodIPs) > 1
	return p.Status.Phase == corev1.PodRunning && hasFamily &&
		(p.Spec.NodeName != "lost" || w.svc.Spec.PublishNotReadyAddresses)
}

func (w *world) checkEndpoint(s *discoveryv1.EndpointSlice, e *discoveryv1.Endpoint) {
	p := w.pods[e.TargetRef.Name]
	serving := p.Status.Conditions[0].Status == corev1.ConditionTrue
	ready := w.svc.Spec.PublishNotReadyAddresses || serving && p.DeletionTimestamp == nil
	c := e.Conditions
	if *c.Ready != ready || *c.Serving != serving || *c.Terminating != (p.DeletionTimestamp != nil) ||
		e.TargetRef.UID != p.UID {
		w.t.Fatalf("endpoint %s of pod %s", e, p.Name)
	}
	if *s.Ports[0].Port != p.Spec.Containers[0].Ports[0].ContainerPort {
		w.t.Fatalf("pod %s is at port %d", p.Name, *s.Ports[0].Port)
	}
}
