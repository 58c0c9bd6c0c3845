package controller

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ipam/multus"
	"github.com/flyball-dev/flyball/examples/operators/ipam/ranges"
	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

// parsePodRef parses namespace/name. It returns false if that cannot be the name of a Pod.
func parsePodRef(ref string) (client.ObjectKey, bool) {
	namespace, name, found := strings.Cut(ref, "/")
	for _, part := range []string{namespace, name} {
		if !found || part == "" || len(content.IsPathSegmentName(part)) > 0 {
			return client.ObjectKey{}, false
		}
	}
	return client.ObjectKey{Namespace: namespace, Name: name}, true
}

// podRef returns the reference to a Pod.
func podRef(pod metav1.Object) string { return pod.GetNamespace() + "/" + pod.GetName() }

// facts are the properties of a Pod that matter here.
type facts struct {
	uid                    types.UID
	phase                  corev1.PodPhase
	reason                 string
	disrupted, terminating bool
	networks               string
}

func factsOf(pod *corev1.Pod) facts {
	f := facts{
		uid: pod.UID, phase: pod.Status.Phase, reason: pod.Status.Reason,
		terminating: pod.DeletionTimestamp != nil, networks: pod.Annotations[multus.NetworkStatusAnnotation],
	}
	for _, c := range pod.Status.Conditions {
		if isDisruption(c) {
			f.disrupted = true
		}
	}
	return f
}

func isDisruption(c corev1.PodCondition) bool {
	return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "DeletionByTaintManager"
}

// whenFactsChange drops the many updates of Pods that do not change their facts.
func whenFactsChange() builder.WatchOptions {
	return builder.WithPredicates(builder.PredicateFunc(func(e predicate.Event[informer.Object]) bool {
		if e.Type != predicate.Update {
			return true
		}
		old, was := e.Old.(*corev1.Pod)
		pod, is := e.Object.(*corev1.Pod)
		return !was || !is || factsOf(old) != factsOf(pod)
	}))
}

// slim reduces a Pod to what [facts] are computed from. A cluster has many Pods, and the operator never writes one.
func slim(obj informer.Object) (informer.Object, error) {
	pod, is := obj.(*corev1.Pod)
	if !is {
		return obj, nil
	}
	kept := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		DeletionTimestamp: pod.DeletionTimestamp,
	}}
	if networks, found := pod.Annotations[multus.NetworkStatusAnnotation]; found {
		kept.Annotations = map[string]string{multus.NetworkStatusAnnotation: networks}
	}
	kept.Status.Phase, kept.Status.Reason = pod.Status.Phase, pod.Status.Reason
	for _, c := range pod.Status.Conditions {
		if isDisruption(c) {
			kept.Status.Conditions = []corev1.PodCondition{{Type: c.Type, Status: c.Status, Reason: c.Reason}}
		}
	}
	return kept, nil
}

// verdict is the decision whether an address is in use.
type verdict int

const (
	inUse verdict = iota
	// waiting means that the Pod does not run yet.
	waiting
	// unreadable means that the Pod's network status is malformed. The address counts as in use.
	unreadable
	// unlisted means that the Pod runs, and its network status does not have the address.
	unlisted
	// orphaned means that nobody uses it.
	orphaned
)

// judgePod decides whether a Pod needs addresses at all. pod is nil if it does not exist. The result is inUse, waiting
// or orphaned.
func (o Options) judgePod(pod *corev1.Pod) verdict {
	if pod == nil {
		return orphaned
	}
	f := factsOf(pod)
	switch {
	case o.CleanupDisrupted && f.disrupted, o.CleanupTerminating && f.terminating:
		return orphaned
	case f.phase == corev1.PodSucceeded, f.phase == corev1.PodFailed:
		return orphaned
	case f.phase == corev1.PodUnknown && f.reason == "NodeLost":
		return orphaned
	case f.phase == corev1.PodPending:
		return waiting
	}
	return inUse
}

// judge decides about one address and interface of a Pod. An invalid ip means that the address could not be read: it is
// never unlisted.
func (o Options) judge(pod *corev1.Pod, ip netip.Addr, ifName string) verdict {
	if v := o.judgePod(pod); v != inUse || !o.VerifyNetworkStatus || !ip.IsValid() {
		return v
	}
	return judgeNetworks(pod.Annotations[multus.NetworkStatusAnnotation], ip, ifName)
}

// bulk is how many Pods of one namespace are read one by one. More are listed.
const bulk = 16

// livePods reads Pods from the server, because an irrevocable release must not depend on how late a cache is. Pods that
// do not exist are not in the result.
func livePods(ctx context.Context, c client.Reader,
	keys map[client.ObjectKey]bool,
) (map[client.ObjectKey]*corev1.Pod, error) {
	namespaces := map[string][]client.ObjectKey{}
	for key := range keys {
		namespaces[key.Namespace] = append(namespaces[key.Namespace], key)
	}
	found := map[client.ObjectKey]*corev1.Pod{}
	for namespace, wanted := range namespaces {
		if len(wanted) > bulk {
			if err := listPods(ctx, c, namespace, keys, found); err != nil {
				return nil, err
			}
			continue
		}
		for _, key := range wanted {
			pod := &corev1.Pod{}
			if err := c.Get(ctx, key, pod, client.Live); client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("get pod %s: %w", key, err)
			} else if err == nil {
				found[key] = pod
			}
		}
	}
	return found, nil
}

func listPods(ctx context.Context, c client.Reader, namespace string, wanted map[client.ObjectKey]bool,
	found map[client.ObjectKey]*corev1.Pod,
) error {
	for next := ""; ; {
		var page corev1.PodList
		if err := c.List(ctx, &page, client.InNamespace(namespace), client.Live, client.Limit(500),
			client.Continue(next)); err != nil {
			return fmt.Errorf("list pods of %s: %w", namespace, err)
		}
		for i := range page.Items {
			if key := client.ObjectKeyFromObject(&page.Items[i]); wanted[key] {
				found[key] = &page.Items[i]
			}
		}
		if next = page.Continue; next == "" {
			return nil
		}
	}
}

// The indexes. Because of them, a pass over one pool does not read all others, and an event of one Pod does not queue
// them.
const (
	// podField finds IPPools and reservations by the Pods that they refer to.
	podField = "podref"
	// rangeField finds IPPools by their network and range; see rangeValues.
	rangeField = "range"
	// networkField finds network attachment definitions by the sliced network that they describe.
	networkField = "network"
	// ownerField finds NodeSlicePools by the UIDs of their owners.
	ownerField = "owner"
)

func addIndexes(ctx context.Context, indexer *client.Cluster) error {
	for _, ix := range []struct {
		object  client.Object
		field   string
		extract func(client.Object) []string
	}{
		{&v1alpha1.IPPool{}, podField, podsOfPool},
		{&v1alpha1.IPPool{}, rangeField, rangeValues},
		{&v1alpha1.OverlappingRangeIPReservation{}, podField, podOfReservation},
		{&multus.NetworkAttachmentDefinition{}, networkField, networkOf},
		{&v1alpha1.NodeSlicePool{}, ownerField, ownersOf},
	} {
		if err := indexer.IndexField(ctx, ix.object, ix.field, ix.extract); err != nil {
			return err
		}
	}
	return nil
}

func podsOfPool(obj client.Object) (refs []string) {
	for _, a := range obj.(*v1alpha1.IPPool).Spec.Allocations {
		refs = append(refs, a.PodRef)
	}
	return refs
}

func podOfReservation(obj client.Object) []string {
	return []string{obj.(*v1alpha1.OverlappingRangeIPReservation).Spec.PodRef}
}

func networkOf(obj client.Object) []string {
	if network, err := obj.(*multus.NetworkAttachmentDefinition).Sliced(); err == nil && network != nil {
		return []string{network.Name}
	}
	return nil
}

func ownersOf(obj client.Object) (uids []string) {
	for _, owner := range obj.GetOwnerReferences() {
		uids = append(uids, string(owner.UID))
	}
	return uids
}

// rangeValues returns the index values of a pool: its network with its range, and with each range that contains it. If
// two ranges overlap, one contains the other. So two lookups for each prefix length find the pools that overlap.
func rangeValues(obj client.Object) (values []string) {
	pool := obj.(*v1alpha1.IPPool)
	cidr, err := ranges.Parse(pool.Spec.Range)
	if err != nil {
		return nil
	}
	network, _ := v1alpha1.NetworkAndNode(pool.Name, pool.Spec.Range)
	for _, p := range ranges.Containing(cidr) {
		values = append(values, within(network, p))
	}
	return append(values, exactly(network, cidr))
}

func within(network string, p netip.Prefix) string  { return network + "|in|" + p.String() }
func exactly(network string, p netip.Prefix) string { return network + "|is|" + p.String() }

// overlapping lists the pools of a network in a namespace that have addresses of cidr.
func overlapping(ctx context.Context, c client.Reader, namespace, network string, cidr netip.Prefix,
	opts ...client.ListOption,
) ([]v1alpha1.IPPool, error) {
	values := []string{within(network, cidr)}
	for _, p := range ranges.Containing(cidr)[:cidr.Bits()] {
		values = append(values, exactly(network, p))
	}
	var found []v1alpha1.IPPool
	for _, value := range values {
		var list v1alpha1.IPPoolList
		o := append([]client.ListOption{
			client.InNamespace(namespace),
			client.MatchingFields{rangeField: value},
			client.ReadOnly,
		}, opts...)
		if err := c.List(ctx, &list, o...); err != nil {
			return nil, err
		}
		found = append(found, list.Items...)
	}
	return found, nil
}

// lookup holds the read options of event handlers: the cache as it is, without waiting and without copies.
var lookup = []client.ListOption{client.ListOptions{ReadOptions: client.ReadOptions{Lagging: true, ReadOnly: true}}}

// wake returns the event handler that queues what find lists for an object. It only logs an error of the list: the pass
// of the next event reads again.
func wake[L client.ObjectList](c client.Reader, newList func() L, by func(informer.Object) []client.ListOption,
	items func(L) []ctrl.Request,
) handler.EventHandler[informer.Object, ctrl.Request] {
	return handler.EnqueueMapped(func(ctx context.Context, obj informer.Object) []ctrl.Request {
		selected := by(obj)
		if selected == nil {
			return nil
		}
		list := newList()
		if err := c.List(ctx, list, append(append([]client.ListOption{}, lookup...), selected...)...); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Objects to wake cannot be listed",
				"because", strings.TrimPrefix(informer.Key(obj), "/"))
			return nil
		}
		return items(list)
	})
}
