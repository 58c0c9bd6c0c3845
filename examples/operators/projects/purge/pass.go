package purge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

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
