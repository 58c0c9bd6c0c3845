package endpointslice

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/controllers/endpointslice/internal/hints"
	"github.com/flyball-dev/flyball/controllers/internal/serving"
	"github.com/flyball-dev/flyball/controllers/internal/sliceset"
)

// observed is what the controller sees of one Service. The objects are shared with the caches: read only.
type observed struct {
	service *corev1.Service
	// pods are the pods that the Service's selector matches.
	pods []*corev1.Pod
	// nodes has the nodes of these pods that are known, by name.
	nodes map[string]*corev1.Node
	// slices are those that this controller manages for the Service and that are not being deleted.
	slices []*discoveryv1.EndpointSlice
	// trigger is the time of the change that this sync publishes, or zero if it is not known.
	trigger time.Time
	// shares is each zone's share of all CPUs, for a Service that asks for such hints; see [hints.ZoneShares].
	shares map[string]float64
	// hinted reports whether such hints were set the last time.
	hinted bool
	// maxEndpoints is the limit of endpoints in a slice. Invariant: at least 1.
	maxEndpoints int
}

// changes is everything that brings a Service's slices up to date.
type changes struct {
	// batches are independent of each other.
	batches []batch
	// missingNodes are pods that were left out because their node is not known.
	missingNodes []*corev1.Pod
	// notices are events to be recorded about the Service, after the writes.
	notices []notice
	// hinted reports whether hints by the zones' shares were set, for the last address family.
	hinted bool
	// skipped are pods without one of the Service's ports. They are for the log.
	skipped []skippedPod
}

// notice is an event to be recorded about the Service.
type notice struct{ kind, reason, message string }

type skippedPod struct {
	pod  *corev1.Pod
	port string
}

// member is a pod that is to be published.
type member struct {
	pod   *corev1.Pod
	node  *corev1.Node // nil: not known
	ports []discoveryv1.EndpointPort
	// key is the [sliceset.PortsKey] of ports.
	key string
}

// planner makes the plan for one Service.
type planner struct {
	observed
	members []member
	out     changes
}

// plan decides what to do about a Service's slices. The Service has a selector.
//
// Source: k8s.io/endpointslice v0.37.2 reconciler.go, Reconcile
func plan(o observed) changes {
	p := &planner{observed: o, out: changes{hinted: o.hinted}}
	p.slices = slices.SortedFunc(slices.Values(o.slices),
		func(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) })
	p.findMembers()
	kinds := addressTypes(o.service)
	for _, kind := range kinds {
		p.out.batches = append(p.out.batches, p.planFamily(kind))
	}
	var obsolete batch
	for _, slice := range p.slices {
		if !slices.Contains(kinds, slice.AddressType) {
			obsolete.Remove = append(obsolete.Remove, slice)
		}
	}
	p.out.batches = append(p.out.batches, obsolete)
	return p.out
}

// findMembers decides which pods are published, and at which ports. A pod whose node is not known is left out, because
// its zone would be missing. It causes an error, so that the Service is retried. If the Service publishes addresses
// that are not ready, such a pod is published without a zone.
func (p *planner) findMembers() {
	pods := slices.SortedFunc(slices.Values(p.pods), func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	for _, pod := range pods {
		if !serving.HasAddress(pod) {
			continue
		}
		ports, missing := portsOf(p.service, pod)
		for _, name := range missing {
			p.out.skipped = append(p.out.skipped, skippedPod{pod: pod, port: name})
		}
		node := p.nodes[pod.Spec.NodeName]
		if node == nil && !p.service.Spec.PublishNotReadyAddresses {
			p.out.missingNodes = append(p.out.missingNodes, pod)
			// This set of ports is still in use, so its slices are kept.
			p.members = append(p.members, member{ports: ports, key: sliceset.PortsKey(ports)})
			continue
		}
		p.members = append(p.members, member{pod: pod, node: node, ports: ports, key: sliceset.PortsKey(ports)})
	}
}

// planFamily decides what to do about the slices of one address family.
//
// Source: k8s.io/endpointslice v0.37.2 reconciler.go, reconcileByAddressType and finalize
func (p *planner) planFamily(kind discoveryv1.AddressType) batch {
	groups, out := p.groups(kind)
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		if g := groups[key]; g.ports != nil {
			packed := p.pack(g, kind)
			out.Add(packed.Batch)
			out.keep = append(out.keep, packed.keep...)
		} else {
			out.Remove = append(out.Remove, g.existing...)
		}
	}
	if len(out.Create)+len(out.Update)+len(out.keep) == 0 {
		p.addPlaceholder(&out, kind)
	}
	p.setHints(&out, kind)
	// The garbage collector deletes the slices of an earlier Service of the same name.
	owned := func(slice *discoveryv1.EndpointSlice) bool {
		return sliceset.OwnedBy(slice, "Service", p.service.UID)
	}
	out.Recycle(owned, func(slice, wanted *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
		return p.rewritten(slice, wanted.Ports, wanted.Endpoints)
	})
	if p.service.DeletionTimestamp != nil {
		out.Create = nil // the garbage collector is deleting the Service's slices
	}
	for _, slice := range slices.Concat(out.Create, out.Update) {
		setTrigger(slice, p.trigger)
	}
	return out
}

// setHints sets the hints that the Service asks for, by its annotation or else by its field.
//
// Source: k8s.io/endpointslice v0.37.2 reconciler.go, reconcileByAddressType
func (p *planner) setHints(out *batch, kind discoveryv1.AddressType) {
	var changed []*discoveryv1.EndpointSlice
	written, before := slices.Concat(out.Create, out.Update), p.out.hinted
	if hints.WantsTopology(p.service) {
		var problem string
		changed, out.keep, problem = hints.Spread(written, out.keep, p.shares)
		switch p.out.hinted = problem == ""; {
		case !p.out.hinted:
			p.notify(corev1.EventTypeWarning, "TopologyAwareHintsDisabled", problem, kind)
		case !before:
			p.notify(corev1.EventTypeNormal, "TopologyAwareHintsEnabled", hints.Enabled, kind)
		}
	} else {
		changed, out.keep = hints.Apply(hints.Traffic(p.service), written, out.keep)
		if p.out.hinted = false; before {
			p.notify(corev1.EventTypeWarning, "TopologyAwareHintsDisabled", hints.Disabled, kind)
		}
	}
	out.Update = append(out.Update, changed...)
}

func (p *planner) notify(eventType, reason, message string, kind discoveryv1.AddressType) {
	p.out.notices = append(p.out.notices, notice{eventType, reason, fmt.Sprintf("%s, addressType: %s", message, kind)})
}

// groups divides the members and slices of the family by their ports. A group whose ports are nil has no member. The
// batch removes the slices of an earlier Service of the same name.
func (p *planner) groups(kind discoveryv1.AddressType) (map[string]*group, batch) {
	var out batch
	groups := make(map[string]*group)
	at := func(key string) *group {
		if groups[key] == nil {
			groups[key] = &group{}
		}
		return groups[key]
	}
	for _, m := range p.members {
		g := at(m.key)
		g.ports = m.ports
		if m.pod == nil {
			continue
		}
		if endpoint, ok := endpointOf(p.service, m.pod, m.node, kind); ok {
			g.wanted.Add(endpoint)
		}
	}
	for _, slice := range p.slices {
		switch {
		case slice.AddressType != kind:
		case sliceset.OwnedBy(slice, "Service", p.service.UID):
			g := at(sliceset.PortsKey(slice.Ports))
			g.existing = append(g.existing, slice)
		default:
			out.Remove = append(out.Remove, slice)
		}
	}
	return groups, out
}

// addPlaceholder makes sure that a Service without endpoints has one slice, without endpoints and ports, which tells
// clients so. It keeps one that would be removed, if that has exactly the wanted labels.
func (p *planner) addPlaceholder(out *batch, kind discoveryv1.AddressType) {
	for i, slice := range out.Remove {
		if len(slice.Endpoints)+len(slice.Ports) == 0 && sliceset.OwnedBy(slice, "Service", p.service.UID) &&
			maps.Equal(slice.Labels, wantedLabels(p.service)) {
			out.Remove = slices.Delete(out.Remove, i, i+1)
			out.keep = append(out.keep, slice)
			return
		}
	}
	out.Create = append(out.Create, p.newSlice(kind, []discoveryv1.EndpointPort{}))
}

// newSlice returns a slice without endpoints.
func (p *planner) newSlice(kind discoveryv1.AddressType, ports []discoveryv1.EndpointPort) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:    p.service.Namespace,
			GenerateName: sliceset.NamePrefix(p.service.Name),
			Labels:       wantedLabels(p.service),
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(p.service, corev1.SchemeGroupVersion.WithKind("Service")),
			},
		},
		AddressType: kind,
		Ports:       ports,
		Endpoints:   []discoveryv1.Endpoint{},
	}
}

// rewritten returns a copy of a slice with other content, and up-to-date labels.
func (p *planner) rewritten(slice *discoveryv1.EndpointSlice, ports []discoveryv1.EndpointPort,
	endpoints []discoveryv1.Endpoint,
) *discoveryv1.EndpointSlice {
	updated := &discoveryv1.EndpointSlice{
		TypeMeta:    slice.TypeMeta,
		ObjectMeta:  *slice.ObjectMeta.DeepCopy(),
		AddressType: slice.AddressType,
		Ports:       ports,
		Endpoints:   endpoints,
	}
	if updated.Endpoints == nil {
		updated.Endpoints = []discoveryv1.Endpoint{}
	}
	updated.Labels = wantedLabels(p.service)
	return updated
}

func setTrigger(slice *discoveryv1.EndpointSlice, trigger time.Time) {
	delete(slice.Annotations, corev1.EndpointsLastChangeTriggerTime)
	if trigger.IsZero() {
		return
	}
	if slice.Annotations == nil {
		slice.Annotations = make(map[string]string)
	}
	slice.Annotations[corev1.EndpointsLastChangeTriggerTime] = trigger.UTC().Format(time.RFC3339Nano)
}
