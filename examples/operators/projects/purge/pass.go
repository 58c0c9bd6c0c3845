package purge

import (
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

// Options say how to purge. The zero value works.
type Options struct {
	// Parallel is how many requests are made at once. Zero means 16.
	Parallel int
	// Force takes finalizers off, and gives Pods no time: for when who should have done so has not.
	Force bool
}

// Left is what a pass found. When nothing is left the purge is complete.
type Left struct {
	Namespaces, Objects int
	// Example names one of the objects, or namespaces.
	Example string
}

// None says that there is nothing left.
func (l Left) None() bool { return l.Namespaces == 0 && l.Objects == 0 }

func (l Left) String() string {
	if l.None() {
		return "nothing"
	}
	return fmt.Sprintf("%d namespaces and %d objects, like %s", l.Namespaces, l.Objects, l.Example)
}

// Gone says whether an error means that there is no API server: nobody listens, or whoever does knows of none.
func Gone(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || apierrors.IsNotFound(err)
}

// Pass looks at what is in an API server, tells it to go, and returns what was there. It takes as long as the requests take: bound it
// by ctx.
//
// Errors: those of requests, joined; after some, the others were made all the same.
func Pass(ctx context.Context, config *rest.Config, o Options) (Left, error) {
	if o.Parallel <= 0 {
		o.Parallel = 16
	}
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext, config.WarningHandler = nil, rest.NoWarnings{} // kinds that are deprecated are purged, too
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

// discover returns the namespaced kinds whose objects can be listed and deleted. Groups that do not answer are left out.
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
			if slices.Contains(r.Verbs, "deletecollection") && slices.Contains(r.Verbs, "list") && r.Kind != "Event" && r.Kind != "Lease" {
				kinds = append(kinds, metav1.TypeMeta{APIVersion: list.GroupVersion, Kind: r.Kind})
			}
		}
	}
	return kinds, nil
}

// deleteNamespaces tells namespaces to go, first: nothing new can be made in them then.
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

// finalize takes the finalizer off terminating namespaces that were found empty, as a namespace controller does.
func (p *pass) finalize(ctx context.Context, namespaces []corev1.Namespace) {
	p.each(len(namespaces), func(i int) error {
		n := namespaces[i].DeepCopy()
		if permanent(n.Name) || p.contents[n.Name] > 0 || n.DeletionTimestamp == nil {
			return nil
		}
		n.Spec.Finalizers = slices.DeleteFunc(n.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
		return gone(p.SubResource("finalize").Update(ctx, n))
	})
}

// force takes the finalizers off what was told to go in a pass before.
func (p *pass) force(ctx context.Context) {
	p.each(len(p.stuck), func(i int) error {
		obj := p.stuck[i]
		patch := fmt.Sprintf(`{"metadata":{"uid":%q,"finalizers":null}}`, obj.UID)
		return gone(p.Patch(ctx, &obj, client.RawPatch(types.MergePatchType, []byte(patch))))
	})
}

// gone leaves out that something is gone already, or somebody else was faster: the next pass sees.
func gone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsMethodNotSupported(err) {
		return nil
	}
	return err
}
