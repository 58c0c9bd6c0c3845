package purge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
)

// Options configure a purge. The zero value works.
type Options struct {
	// Parallel is how many requests are sent at once. Zero means 16.
	Parallel int
	// Force removes finalizers and ends the grace periods of Pods. It is for objects whose own controllers have not
	// done so.
	Force bool
}

// Left is what a pass found. If nothing is left, the purge is complete.
type Left struct {
	Namespaces, Objects int
	// Example names one of the objects or namespaces.
	Example string
}

// None reports whether nothing is left.
func (l Left) None() bool { return l.Namespaces == 0 && l.Objects == 0 }

func (l Left) String() string {
	if l.None() {
		return "nothing"
	}
	return fmt.Sprintf("%d namespaces and %d objects, like %s", l.Namespaces, l.Objects, l.Example)
}

// Gone reports whether an error means that there is no API server: nothing listens, or the server that listens does not
// know it.
func Gone(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || apierrors.IsNotFound(err)
}

// Pass lists what is in an API server, deletes it, and returns what was there. It takes as long as its requests; bound
// it with ctx.
//
// Errors: those of requests, joined. An error does not stop the other requests.
func Pass(ctx context.Context, config *rest.Config, o Options) (Left, error) {
	if o.Parallel <= 0 {
		o.Parallel = 16
	}
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext, config.WarningHandler = nil, rest.NoWarnings{} // deprecated kinds are purged, too
	c, err := client.New(config, client.Options{})
	if err != nil {
		return Left{}, err
	}
	var namespaces corev1.NamespaceList
	if err := c.List(ctx, &namespaces); err != nil {
		return Left{}, fmt.Errorf("list namespaces: %w", err)
	}
	kinds, err := discover(ctx, config)
	if err != nil {
		return Left{}, fmt.Errorf("discover what is served: %w", err)
	}
	p := &pass{Client: c, o: o, contents: map[string]int{}}
	p.deleteNamespaces(ctx, namespaces.Items)
	p.each(len(kinds), func(i int) error { return p.scan(ctx, kinds[i]) })
	p.deleteObjects(ctx)
	if o.Force {
		p.force(ctx)
	}
	p.finalize(ctx, namespaces.Items)
	return p.left, errors.Join(p.errs...)
}

// discover returns the namespaced kinds whose objects can be listed and deleted. Groups that do not answer are left
// out.
func discover(ctx context.Context, config *rest.Config) ([]metav1.TypeMeta, error) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	lists, err := d.ServerPreferredNamespacedResourcesWithContext(ctx)
	if err != nil && len(lists) == 0 {
		return nil, err
	}
	var kinds []metav1.TypeMeta
	for _, list := range lists {
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "deletecollection") && slices.Contains(r.Verbs, "list") && r.Kind != "Event" &&
				r.Kind != "Lease" {
				kinds = append(kinds, metav1.TypeMeta{APIVersion: list.GroupVersion, Kind: r.Kind})
			}
		}
	}
	slices.SortFunc(kinds, func(a, b metav1.TypeMeta) int { // Discovery has them in the order of a map.
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind))
	})
	return kinds, nil
}

// deleteNamespaces deletes the namespaces. It comes first, because nothing new can be created in them after that.
func (p *pass) deleteNamespaces(ctx context.Context, namespaces []corev1.Namespace) {
	var doomed []*corev1.Namespace
	for i := range namespaces {
		if n := &namespaces[i]; !permanent(n.Name) {
			doomed = append(doomed, n)
		}
	}
	p.left.Namespaces = len(doomed)
	p.each(len(doomed), func(i int) error {
		n := doomed[i]
		p.example("namespace " + n.Name)
		if n.DeletionTimestamp != nil {
			return nil
		}
		return gone(p.Delete(ctx, n, client.OnlyThis(n)))
	})
}

// finalize removes the finalizer from terminating namespaces that were found empty, as a namespace controller does.
func (p *pass) finalize(ctx context.Context, namespaces []corev1.Namespace) {
	p.each(len(namespaces), func(i int) error {
		n := namespaces[i].DeepCopy()
		if permanent(n.Name) || p.contents[n.Name] > 0 || n.DeletionTimestamp == nil {
			return nil
		}
		n.Spec.Finalizers = slices.DeleteFunc(n.Spec.Finalizers,
			func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
		return gone(p.SubResource("finalize").Update(ctx, n))
	})
}

// force removes the finalizers from what an earlier pass deleted.
func (p *pass) force(ctx context.Context) {
	p.each(len(p.stuck), func(i int) error {
		obj := p.stuck[i]
		patch := fmt.Sprintf(`{"metadata":{"uid":%q,"finalizers":null}}`, obj.UID)
		return gone(p.Patch(ctx, &obj, client.RawPatch(types.MergePatchType, []byte(patch))))
	})
}

// gone ignores errors because an object is gone already or was changed by another writer: the next pass sees the
// result.
func gone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsMethodNotSupported(err) {
		return nil
	}
	return err
}

// pass is the state of one pass.
type pass struct {
	client.Client
	o Options

	mu   sync.Mutex
	left Left
	errs []error
	// contents counts the objects of each namespace.
	contents map[string]int
	// collections are the kinds and namespaces with objects that are not being deleted yet.
	collections []collection
	// stuck are the objects that are being deleted and have finalizers.
	stuck []metav1.PartialObjectMetadata
}

type collection struct {
	kind      metav1.TypeMeta
	namespace string
}

// pageSize is how many objects one request lists.
const pageSize = 500

// each calls do for 0 … n-1, several at once, and collects the errors.
func (p *pass) each(n int, do func(i int) error) {
	var group errgroup.Group
	group.SetLimit(p.o.Parallel)
	for i := range n {
		group.Go(func() error {
			if err := do(i); err != nil {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.errs = append(p.errs, err)
			}
			return nil
		})
	}
	_ = group.Wait()
}

// example keeps the first name, for messages.
func (p *pass) example(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left.Example = cmp.Or(p.left.Example, what)
}

// scan records the objects of a kind.
func (p *pass) scan(ctx context.Context, kind metav1.TypeMeta) error {
	next := ""
	for {
		list := &metav1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{APIVersion: kind.APIVersion, Kind: kind.Kind + "List"},
		}
		if err := p.List(ctx, list, client.Limit(pageSize), client.Continue(next)); err != nil {
			return gone(fmt.Errorf("list %s of %s: %w", kind.Kind, kind.APIVersion, err))
		}
		for i := range list.Items {
			p.note(kind, list.Items[i])
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}

func (p *pass) note(kind metav1.TypeMeta, obj metav1.PartialObjectMetadata) {
	if own(kind.Kind, &obj) {
		return
	}
	p.example(kind.Kind + " " + obj.Namespace + "/" + obj.Name)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left.Objects++
	p.contents[obj.Namespace]++
	obj.TypeMeta = kind
	c := collection{kind, obj.Namespace}
	switch {
	case obj.DeletionTimestamp == nil || p.o.Force && len(obj.Finalizers) == 0:
		if !slices.Contains(p.collections, c) {
			p.collections = append(p.collections, c)
		}
	case len(obj.Finalizers) > 0:
		p.stuck = append(p.stuck, obj)
	}
}

// deleteObjects deletes everything that was found.
func (p *pass) deleteObjects(ctx context.Context) {
	p.each(len(p.collections), func(i int) error {
		c := p.collections[i]
		obj := &metav1.PartialObjectMetadata{TypeMeta: c.kind}
		o := []client.DeleteAllOfOption{
			client.InNamespace(c.namespace),
			client.PropagationPolicy(metav1.DeletePropagationBackground),
		}
		if p.o.Force {
			o = append(o, client.GracePeriodSeconds(0))
		}
		if err := gone(p.DeleteAllOf(ctx, obj, o...)); err != nil {
			return fmt.Errorf("delete all %s in %s: %w", c.kind.Kind, c.namespace, err)
		}
		return nil
	})
}

// permanent reports whether the API server recreates the namespace.
func permanent(namespace string) bool {
	return namespace == "default" || strings.HasPrefix(namespace, "kube-")
}

// own reports whether an object belongs to the API server, or to what runs beside it in every cluster, and is
// recreated.
func own(kind string, obj *metav1.PartialObjectMetadata) bool {
	switch {
	case strings.HasPrefix(obj.Namespace, "kube-"):
		return true
	case kind == "ServiceAccount" && obj.Name == "default", kind == "ConfigMap" && obj.Name == "kube-root-ca.crt":
		return true
	case obj.Namespace == "default" && obj.Name == "kubernetes":
		return kind == "Service" || kind == "Endpoints" || kind == "EndpointSlice"
	}
	return false
}
