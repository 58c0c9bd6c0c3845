package purge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
)

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
	if p.left.Example == "" {
		p.left.Example = what
	}
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
