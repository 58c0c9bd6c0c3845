package namespaces

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
)

// contents is what one pass of a deletion found out.
type contents struct {
	discovery error     // of discovery: resources may be missing
	parsing   error     // of group versions that the server named
	failed    []failure // of deletes and lists
	podsFirst bool      // the pass stopped at the pods and did not look at the rest

	wait       time.Duration                       // how long the remaining content may take
	remaining  map[schema.GroupVersionResource]int // number of objects left
	finalizers map[string]int                      // number of objects left, by finalizer
}

// failure is an error about the content of one resource.
type failure struct {
	resource schema.GroupResource
	err      error
}

func (c contents) err() error {
	var errs []error
	for _, f := range c.failed {
		errs = append(errs, fmt.Errorf("delete %s: %w", f.resource, f.err))
	}
	if c.parsing != nil {
		errs = append(errs, fmt.Errorf("read group versions: %w", c.parsing))
	}
	if c.discovery != nil {
		errs = append(errs, fmt.Errorf("discover resources: %w", c.discovery))
	}
	return errors.Join(errs...)
}

// add adds what is left of one resource.
func (c *contents) add(r deletable, left leftover) {
	c.wait = max(c.wait, left.wait)
	if left.count == 0 {
		return
	}
	c.remaining[r.GroupVersionResource] = left.count
	for f, n := range left.finalizers {
		c.finalizers[f] += n
	}
}

// deletable is a resource whose objects a namespace can contain.
type deletable struct {
	schema.GroupVersionResource
	list, deleteCollection bool // supported, according to the server
}

// deletables returns the resources that can be deleted, sorted, so that every pass has the same order.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/namespace/deletion/namespaced_resources_deleter.go, initOpCache.
func deletables(lists []*metav1.APIResourceList) ([]deletable, error) {
	var all []deletable
	var errs []error
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"delete"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, r := range list.APIResources {
			all = append(all, deletable{
				GroupVersionResource: gv.WithResource(r.Name),
				list:                 slices.Contains(r.Verbs, "list"),
				deleteCollection:     slices.Contains(r.Verbs, "deletecollection"),
			})
		}
	}
	slices.SortFunc(all, func(a, b deletable) int { return cmp.Compare(a.String(), b.String()) })
	return all, errors.Join(errs...)
}

var pods = corev1.SchemeGroupVersion.WithResource("pods")

// deleteContent deletes the content of a namespace. It deletes the pods first, because what they use must not go before
// they do. While there are pods, it deletes nothing else.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/namespace/deletion/namespaced_resources_deleter.go,
// deleteAllContent.
func (c *Controller) deleteContent(ctx context.Context, ns *corev1.Namespace) contents {
	found := contents{remaining: map[schema.GroupVersionResource]int{}, finalizers: map[string]int{}}
	server := discovery.ToDiscoveryInterfaceWithContext(c.server)
	lists, err := discovery.ServerPreferredNamespacedResourcesWithContext(ctx, server)
	found.discovery = err
	all, err := deletables(lists)
	found.parsing = err
	if len(all) == 0 && found.err() == nil {
		found.discovery = errors.New("the server names no resource")
	}
	for _, first := range []bool{true, false} {
		for _, r := range all {
			if (r.GroupVersionResource == pods) != first {
				continue
			}
			left, err := c.deleteResource(ctx, r, ns)
			if err != nil {
				found.failed = append(found.failed, failure{r.GroupResource(), err})
			}
			found.add(r, left)
		}
		if first && found.remaining[pods] > 0 {
			found.podsFirst = true
			break
		}
	}
	return found
}

// leftover is what is left of one resource in a namespace.
type leftover struct {
	wait       time.Duration
	count      int
	finalizers map[string]int
}

// finalizersWait is the guess for how long finalizers take.
const finalizersWait = 15 * time.Second

// deleteResource deletes the objects of one resource in a namespace. Its errors are not wrapped, because they become
// part of a condition, in upstream's words.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/namespace/deletion/namespaced_resources_deleter.go,
// deleteAllContentForGroupVersionResource.
func (c *Controller) deleteResource(ctx context.Context, r deletable, ns *corev1.Namespace) (leftover, error) {
	var left leftover
	if r.GroupVersionResource == pods {
		grace, err := c.podsGrace(ctx, ns.Name)
		if err != nil {
			return left, err
		}
		if time.Since(ns.DeletionTimestamp.Time) < grace {
			left.wait = grace
		}
	}
	content := c.content.Resource(r.GroupVersionResource).Namespace(ns.Name)
	if err := deleteAll(ctx, content, r); err != nil {
		return left, err
	}
	items, listable, err := list(ctx, content, r)
	if err != nil {
		return left, err
	}
	if !listable {
		return left, nil
	}
	if len(items) == 0 {
		return leftover{}, nil
	}
	left.count, left.finalizers = len(items), countFinalizers(items)
	if left.wait == 0 {
		if len(left.finalizers) == 0 {
			return left,
				fmt.Errorf("unexpected items still remain in namespace: %s for gvr: %v", ns.Name,
					r.GroupVersionResource)
		}
		left.wait = finalizersWait
	}
	return left, nil
}

// deleteAll requests the deletion of all objects, with one request if the server supports that.
func deleteAll(ctx context.Context, content metadata.ResourceInterface, r deletable) error {
	o := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	if r.deleteCollection {
		if err := content.DeleteCollection(ctx, o, metav1.ListOptions{}); !unsupported(err) {
			return err
		}
	}
	items, _, err := list(ctx, content, r)
	if err != nil {
		return err
	}
	for i := range items {
		if err := content.Delete(ctx, items[i].Name, o); err != nil && !unsupported(err) {
			return err
		}
	}
	return nil
}

// list returns the objects. The bool is false if they cannot be listed.
func list(ctx context.Context, content metadata.ResourceInterface,
	r deletable,
) ([]metav1.PartialObjectMetadata, bool, error) {
	if !r.list {
		return nil, false, nil
	}
	l, err := content.List(ctx, metav1.ListOptions{})
	if unsupported(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, true, err
	}
	return l.Items, true, nil
}

// unsupported reports whether err means that the resource does not exist or does not support the verb. (Some servers
// answer an unknown verb with 404, and a resource may have gone since discovery.)
func unsupported(err error) bool {
	return apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err)
}

func countFinalizers(items []metav1.PartialObjectMetadata) map[string]int {
	counts := map[string]int{}
	for i := range items {
		for _, f := range items[i].Finalizers {
			counts[f]++
		}
	}
	return counts
}

// podsGrace returns the longest grace period of the pods that have not ended yet.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/namespace/deletion/namespaced_resources_deleter.go,
// estimateGracefulTerminationForPods.
func (c *Controller) podsGrace(ctx context.Context, namespace string) (time.Duration, error) {
	var list corev1.PodList
	if err := c.client.List(ctx, &list, client.InNamespace(namespace), client.Live); err != nil {
		return 0, err
	}
	var longest int64
	for i := range list.Items {
		if phase := list.Items[i].Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			longest = max(longest, ptr.Deref(list.Items[i].Spec.TerminationGracePeriodSeconds, 0))
		}
	}
	return time.Duration(longest) * time.Second, nil
}
