package controller

import (
	"context"
	"net/netip"
	"strings"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ipam/multus"
	"github.com/flyball-dev/flyball/examples/operators/ipam/ranges"
	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

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
