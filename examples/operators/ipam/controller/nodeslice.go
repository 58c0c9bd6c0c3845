package controller

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/examples/operators/ipam/multus"
	"github.com/flyball-dev/flyball/examples/operators/ipam/ranges"
	"github.com/flyball-dev/flyball/examples/operators/ipam/v1alpha1"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

// sliceReconciler reconciles NodeSlicePools. The key is that of a pool which exists or should exist. One pass considers
// all network attachment definitions of the network, so that there is one result for the pool.
type sliceReconciler struct {
	client.Client
	options  Options
	recorder events.Recorder
}

func (r *sliceReconciler) setup(mgr ctrl.Manager) error {
	added := builder.WithPredicates(builder.PredicateFunc(func(e predicate.Event[informer.Object]) bool {
		return e.Type != predicate.Update
	}))
	all := wake(r, sliced, func(informer.Object) []client.ListOption { return []client.ListOption{} },
		requestsForSliced)
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodeslicepool").
		For(&v1alpha1.NodeSlicePool{}).
		Watches(&multus.NetworkAttachmentDefinition{}, handler.EnqueueMapped(r.poolsOfNetwork)).
		WatchesMetadata(&corev1.Node{}, all, added).
		Watches(&v1alpha1.IPPool{}, handler.EnqueueMapped(r.poolsOfRange),
			builder.WithPredicates(builder.PredicateFunc(shrinks))).
		WithOptions(ctrl.ControllerOptions{MinInterval: r.options.MinInterval}).
		Complete(r)
}

func sliced() *v1alpha1.NodeSlicePoolList { return &v1alpha1.NodeSlicePoolList{} }

func requestsForSliced(list *v1alpha1.NodeSlicePoolList) (requests []ctrl.Request) {
	for i := range list.Items {
		requests = append(requests, reconcile.RequestFor(&list.Items[i]))
	}
	return requests
}

// shrinks accepts events after which a slice may no longer be in use.
func shrinks(e predicate.Event[informer.Object]) bool {
	pool := e.Object.(*v1alpha1.IPPool)
	switch e.Type {
	case predicate.Add:
		return false
	case predicate.Delete:
		return true
	}
	old := e.Old.(*v1alpha1.IPPool)
	return old.Spec.Range != pool.Spec.Range || len(old.Spec.Allocations) > len(pool.Spec.Allocations)
}

// poolsOfNetwork returns the pools of the network that a definition describes: its own, and those in other namespaces,
// whose definitions must agree. For a definition that cannot be read, it returns the pools that the definition owns.
func (r *sliceReconciler) poolsOfNetwork(ctx context.Context, obj informer.Object) (requests []ctrl.Request) {
	nad := obj.(*multus.NetworkAttachmentDefinition)
	var owned v1alpha1.NodeSlicePoolList
	var same multus.NetworkAttachmentDefinitionList
	network, _ := nad.Sliced()
	err := r.List(ctx, &owned,
		append([]client.ListOption{client.MatchingFields{ownerField: string(nad.UID)}}, lookup...)...)
	if err == nil && network != nil {
		requests = append(requests, request(nad.Namespace, network.Name))
		err = r.List(ctx, &same,
			append([]client.ListOption{client.MatchingFields{networkField: network.Name}}, lookup...)...)
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Objects to wake cannot be listed", "because", informer.Key(nad))
	}
	for i := range same.Items {
		requests = append(requests, request(same.Items[i].Namespace, network.Name))
	}
	return append(requests, requestsForSliced(&owned)...)
}

func request(namespace, name string) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}
}

// poolsOfRange returns the pools that an IPPool takes its addresses from.
func (r *sliceReconciler) poolsOfRange(ctx context.Context, obj informer.Object) (requests []ctrl.Request) {
	cidr, err := ranges.Parse(obj.(*v1alpha1.IPPool).Spec.Range)
	if err != nil {
		return nil
	}
	var list v1alpha1.NodeSlicePoolList
	if err := r.List(ctx, &list,
		append([]client.ListOption{client.InNamespace(obj.GetNamespace())}, lookup...)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Objects to wake cannot be listed", "because", informer.Key(obj))
	}
	for i := range list.Items {
		if whole, err := ranges.Parse(list.Items[i].Spec.Range); err == nil && whole.Overlaps(cidr) {
			requests = append(requests, reconcile.RequestFor(&list.Items[i]))
		}
	}
	return requests
}

// +kubebuilder:rbac:groups=whereabouts.cni.cncf.io,resources=nodeslicepools,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups=whereabouts.cni.cncf.io,resources=nodeslicepools/status,verbs=patch
// +kubebuilder:rbac:groups=whereabouts.cni.cncf.io,resources=ippools,verbs=list;watch
// +kubebuilder:rbac:groups=k8s.cni.cncf.io,resources=network-attachment-definitions,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Reconcile implements ctrl.Reconciler.
func (r *sliceReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pool v1alpha1.NodeSlicePool
	err := r.Get(ctx, request.NamespacedName, &pool)
	exists := err == nil
	if client.IgnoreNotFound(err) != nil || pool.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !exists {
		r.options.Metrics.forgetSliced(request.NamespacedName)
	}
	nads, network, err := r.network(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if network == nil {
		if !exists {
			return ctrl.Result{}, nil
		}
		s, err := r.abandoned(ctx, &pool)
		if err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, r.tell(ctx, &pool, s)
	}
	parts, reason, err := r.cut(ctx, network)
	if err != nil && reason == "" {
		return ctrl.Result{}, err
	}
	if err != nil {
		if !exists {
			r.recorder.Eventf(nads[0], corev1.EventTypeWarning, reason, "%v", err)
			return ctrl.Result{}, reconcile.Terminal(err)
		}
		if failed := r.tell(ctx, &pool, stalled(reason, "%v", err)); failed != nil {
			return ctrl.Result{}, failed
		}
		return ctrl.Result{}, reconcile.Terminal(err)
	}
	p := &slicePass{sliceReconciler: r, pool: &pool, nads: nads, network: network, parts: parts}
	if !exists {
		return p.create(ctx, request.NamespacedName)
	}
	return p.update(ctx)
}

// network reads the definitions of a pool in its namespace, oldest first. The network is nil if there are none.
func (r *sliceReconciler) network(ctx context.Context,
	key client.ObjectKey,
) (nads []*multus.NetworkAttachmentDefinition, network *multus.SlicedNetwork, err error) {
	var list multus.NetworkAttachmentDefinitionList
	if err := r.List(ctx, &list, client.InNamespace(key.Namespace),
		client.MatchingFields{networkField: key.Name}); err != nil {
		return nil, nil, fmt.Errorf("list network attachment definitions: %w", err)
	}
	for i := range list.Items {
		nads = append(nads, &list.Items[i])
	}
	if len(nads) == 0 {
		return nil, nil, nil
	}
	slices.SortFunc(nads, func(a, b *multus.NetworkAttachmentDefinition) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	network, err = nads[0].Sliced()
	return nads, network, err
}

// cut cuts the network's range. All definitions of the network, in any namespace, must agree about it.
//
// Errors: with a reason, those that a user has to attend to; without one, all others.
func (r *sliceReconciler) cut(ctx context.Context,
	network *multus.SlicedNetwork,
) (parts ranges.Slices, reason string, err error) {
	var list multus.NetworkAttachmentDefinitionList
	if err := r.List(ctx, &list, client.MatchingFields{networkField: network.Name}, client.ReadOnly); err != nil {
		return parts, "", fmt.Errorf("list network attachment definitions: %w", err)
	}
	said := map[string]string{}
	for i := range list.Items {
		if other, err := list.Items[i].Sliced(); err == nil && other != nil {
			said[other.Range+" in slices of /"+strings.TrimPrefix(other.SliceSize, "/")] = informer.Key(&list.Items[i])
		}
	}
	if len(said) > 1 {
		var all []string
		for what, who := range said {
			all = append(all, who+" has "+what)
		}
		return parts, ReasonMismatch, fmt.Errorf("definitions of network %s differ: %s", network.Name, some(all))
	}
	parts, err = ranges.Cut(network.Range, network.SliceSize)
	return parts, ReasonInvalidRange, err
}

// abandoned returns the state of a pool whose network no definition describes, with the reason. The pool stays as it
// is: the nodes continue to use their slices.
func (r *sliceReconciler) abandoned(ctx context.Context, pool *v1alpha1.NodeSlicePool) (state, error) {
	for _, owner := range pool.OwnerReferences {
		nad := &multus.NetworkAttachmentDefinition{}
		if err := r.Get(ctx, client.ObjectKey{Namespace: pool.Namespace, Name: owner.Name},
			nad); client.IgnoreNotFound(err) != nil {
			return state{}, fmt.Errorf("get network attachment definition: %w", err)
		}
		if _, err := nad.Sliced(); err != nil && nad.UID == owner.UID {
			return stalled(ReasonInvalidConfig, "%s: %v", nad.Name, err), nil
		}
	}
	return stalled(ReasonNetworkGone, "no network attachment definition describes network %s any more", pool.Name), nil
}

// tell writes the conditions of a pool that otherwise stays as it is.
func (r *sliceReconciler) tell(ctx context.Context, pool *v1alpha1.NodeSlicePool, s state) error {
	helper, err := controllerutil.NewPatchHelper(r, pool)
	if err != nil {
		return err
	}
	news := s.set(&pool.Status.Conditions, pool.Generation)
	if err := helper.Patch(ctx, pool); err != nil {
		return client.IgnoreNotFound(err)
	}
	if news && s.reason != ReasonReconciled {
		r.recorder.Eventf(pool, s.eventType(), s.reason, "%s", s.message)
	}
	return nil
}

// nodes returns the names of all nodes, sorted.
func (r *sliceReconciler) nodes(ctx context.Context) (names []string, err error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := r.List(ctx, list, client.ReadOnly); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names, nil
}

// users returns the slices with addresses in use, and the nodes that use them as far as the names of the IPPools tell.
// If live, it asks the server for the pools, not the cache.
func (r *sliceReconciler) users(ctx context.Context, namespace, network string, parts ranges.Slices,
	live bool,
) (map[int]string, error) {
	read := func() ([]v1alpha1.IPPool, error) { return overlapping(ctx, r, namespace, network, parts.Whole()) }
	if live {
		read = func() ([]v1alpha1.IPPool, error) { return listPools(ctx, r, namespace, network) }
	}
	pools, err := read()
	if err != nil {
		return nil, fmt.Errorf("list pools of the range: %w", err)
	}
	slices.SortFunc(pools, func(a, b v1alpha1.IPPool) int { return cmp.Compare(a.Name, b.Name) })
	used := map[int]string{}
	for i := range pools {
		cidr, err := ranges.Parse(pools[i].Spec.Range)
		if err != nil {
			continue
		}
		_, node := v1alpha1.NetworkAndNode(pools[i].Name, pools[i].Spec.Range)
		for key := range pools[i].Spec.Allocations {
			note(used, parts, cidr, key, node)
		}
	}
	return used, nil
}

// listPools asks the server for the pools of a network.
func listPools(ctx context.Context, c client.Reader, namespace, network string) (found []v1alpha1.IPPool, err error) {
	for next := ""; ; {
		var page v1alpha1.IPPoolList
		if err := c.List(ctx, &page, client.InNamespace(namespace), client.Live, client.Limit(500),
			client.Continue(next)); err != nil {
			return nil, err
		}
		for i := range page.Items {
			if of, _ := v1alpha1.NetworkAndNode(page.Items[i].Name, page.Items[i].Spec.Range); of == network {
				found = append(found, page.Items[i])
			}
		}
		if next = page.Continue; next == "" {
			return found, nil
		}
	}
}

func note(used map[int]string, parts ranges.Slices, cidr netip.Prefix, key, node string) {
	if ip, valid := ranges.At(cidr, key); valid {
		if n, within := parts.Of(ip); within && used[n] == "" {
			used[n] = node
		}
	}
}
