package controllerruntime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	own "github.com/flyball-dev/flyball/client"
)

// NewClient is for [sigs.k8s.io/controller-runtime/pkg/manager.Options].NewClient, together with [NewCache]: its cached
// reads see the client's own writes. docs/read-your-writes.md describes the guarantee.
//
// If the answer to a write was lost, reads that depend on it go to the server. The guarantee does not hold for kinds
// whose namespaces are cached under different selectors, nor with caches that NewCache did not make: they are read as
// controller-runtime reads them.
func NewClient(config *rest.Config, o client.Options) (client.Client, error) {
	if config == nil {
		return nil, fmt.Errorf("new client: %w", errNoConfig)
	}
	live := o
	live.Cache = nil
	server, err := client.New(config, live)
	if err != nil {
		return nil, err
	}
	if o.Cache == nil || o.Cache.Reader == nil {
		return server, nil
	}
	cache, ok := o.Cache.Reader.(*Cache)
	if !ok {
		return client.New(config, o)
	}
	cluster, err := cache.through(config, o.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("new client: %w", err)
	}
	c := &consistent{Client: server, cache: cache, cluster: cluster, unstructured: o.Cache.Unstructured}
	for _, obj := range o.Cache.DisableFor {
		k, err := cache.kindOf(obj)
		if err != nil {
			return nil, fmt.Errorf("new client: Cache.DisableFor: %w", err)
		}
		c.live = append(c.live, k.gvk)
	}
	return defaults(c, o), nil
}

// defaults wraps c with the default options for all its writes.
func defaults(c client.Client, o client.Options) client.Client {
	if o.FieldValidation != "" {
		c = client.WithFieldValidation(c, client.FieldValidation(o.FieldValidation))
	}
	if o.FieldOwner != "" {
		c = client.WithFieldOwner(c, o.FieldOwner)
	}
	if isTrue(o.DryRun) {
		c = client.NewDryRunClient(c)
	}
	return c
}

// consistent is a client that reads its own writes from the cache. The embedded client does the rest: live reads.
type consistent struct {
	client.Client
	cache *Cache
	// cluster reads the caches, and writes with this client's configuration.
	cluster *own.Cluster
	// live has the kinds that are never read from the cache.
	live []schema.GroupVersionKind
	// unstructured reports whether unstructured objects are read from the cache.
	unstructured bool
}

// cached returns the entry to read obj from, or nil if the server must be asked.
func (c *consistent) cached(obj runtime.Object) (*entry, error) {
	k, err := c.cache.kindOf(obj)
	if err != nil {
		return nil, err
	}
	if slices.Contains(c.live, k.gvk) || (k.form == formUnstructured && !c.unstructured) {
		return nil, nil
	}
	return c.cache.readable(obj)
}

// Get reads one object.
func (c *consistent) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	var o client.GetOptions
	o.ApplyOptions(opts)
	e, err := c.cached(obj)
	switch {
	case err != nil:
		return err
	case e == nil:
		return c.Client.Get(ctx, key, obj, opts...)
	case len(e.parts) > 1 || !e.follows(key.Namespace) || key.Name == "" || (e.namespaced && key.Namespace == ""):
		return c.cache.Get(ctx, key, obj, opts...) // An object without a key has no own write.
	case !e.namespaced:
		key.Namespace = ""
	}
	err = e.timeout(c.cluster.Get(ctx, key, obj, e.reads(o.UnsafeDisableDeepCopy, o.DisableReadYourWritesConsistency)))
	if apierrors.IsNotFound(err) {
		return e.notFound(key.Name)
	}
	return err
}

func (e *entry) reads(share *bool, lagging bool) own.ReadOptions {
	return own.ReadOptions{LiveIfStale: !lagging, Lagging: lagging, ReadOnly: isTrue(share) || e.parts[0].shares()}
}

func (e *entry) follows(namespace string) bool { return e.partOf(namespace) != nil || namespace == "" }

// timeout turns the error of a cache that has not synced into the one that controller-runtime's users expect.
func (e *entry) timeout(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &notSynced{kind: e.kind.gvk.Kind, why: err}
	}
	return err
}

// List reads the objects that the options select.
func (c *consistent) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	e, err := c.cached(list)
	switch {
	case err != nil:
		return err
	case e == nil:
		return c.Client.List(ctx, list, opts...)
	case len(e.parts) > 1 || !e.follows(o.Namespace) || o.Continue != "":
		return c.cache.List(ctx, list, opts...)
	case !e.namespaced:
		o.Namespace = ""
	}
	query := own.ListOptions{
		ReadOptions: e.reads(o.UnsafeDisableDeepCopy, o.DisableReadYourWritesConsistency), Namespace: o.Namespace,
		LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector,
	}
	if o.FieldSelector != nil {
		if _, err := e.indexed(o.FieldSelector); err != nil {
			return err
		}
	}
	said, version := list.GetObjectKind().GroupVersionKind(), list.GetResourceVersion()
	if err := e.timeout(c.cluster.List(ctx, list, query)); err != nil {
		return err
	}
	list.GetObjectKind().SetGroupVersionKind(said)
	list.SetResourceVersion(version)
	list.SetContinue(continueNotSupported)
	return cut(list, o.Limit)
}

// cut truncates a list.
func cut(list client.ObjectList, limit int64) error {
	if limit <= 0 || int64(meta.LenList(list)) <= limit {
		return nil
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	return meta.SetList(list, items[:limit])
}

// deletions converts options of a deletion to Flyball's.
type deletions own.DeleteAllOfOptions

func (d deletions) ApplyToDelete(o *own.DeleteOptions)           { *o = d.DeleteOptions }
func (d deletions) ApplyToDeleteAllOf(o *own.DeleteAllOfOptions) { *o = own.DeleteAllOfOptions(d) }

func newDeletions(o *client.DeleteOptions) deletions {
	d := o.AsDeleteOptions()
	//lint:ignore SA1019 Callers may use it.
	if orphan := d.OrphanDependents; orphan != nil && d.PropagationPolicy == nil { // The server rejects both at once.
		policy := metav1.DeletePropagationBackground
		if *orphan {
			policy = metav1.DeletePropagationOrphan
		}
		d.PropagationPolicy = &policy
	}
	return deletions{DeleteOptions: own.DeleteOptions{
		GracePeriodSeconds: d.GracePeriodSeconds, Preconditions: d.Preconditions,
		PropagationPolicy: d.PropagationPolicy, DryRun: len(d.DryRun) > 0,
	}}
}

// patch makes a patch of controller-runtime one of Flyball.
type patch struct{ client.Patch }

func (p patch) Type() types.PatchType { return p.Patch.Type() }

// Data returns the patch to send. If it starts from a base, we compute it: controller-runtime encodes both objects as
// JSON and decodes them into maps, which takes a sixth of the processor time of a patch.
func (p patch) Data(obj own.Object) ([]byte, error) {
	if base := baseOf(p.Patch); base != nil {
		return own.MergeFrom(base).Data(obj)
	}
	return p.Patch.Data(obj)
}

var mergeFrom = reflect.TypeOf(client.MergeFrom(nil))

// baseOf returns the object that a merge patch of [client.MergeFrom] starts from. It returns nil for other patches, for
// one with an optimistic lock, and if the type of the patch is no longer the one that we know. The base is not
// exported, so it is read by reflection (docs/decisions/0024-write-path.md).
func baseOf(p client.Patch) client.Object {
	if reflect.TypeOf(p) != mergeFrom || p.Type() != types.MergePatchType {
		return nil
	}
	known := reflect.ValueOf(p).Elem()
	from, o := known.FieldByName("from"), known.FieldByName("opts")
	if !from.IsValid() || from.Type() != reflect.TypeFor[client.Object]() ||
		!o.IsValid() || o.Type() != reflect.TypeFor[client.MergeFromOptions]() || !o.IsZero() {
		return nil
	}
	return *reflect.NewAt(from.Type(), from.Addr().UnsafePointer()).Interface().(*client.Object)
}

// Create creates obj.
func (c *consistent) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	m := (&client.CreateOptions{}).ApplyOptions(opts).AsCreateOptions()
	return c.cluster.Create(ctx, obj,
		own.WriteOptions{FieldManager: m.FieldManager, FieldValidation: m.FieldValidation, DryRun: len(m.DryRun) > 0})
}

// Update replaces obj.
func (c *consistent) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	m := (&client.UpdateOptions{}).ApplyOptions(opts).AsUpdateOptions()
	return c.cluster.Update(ctx, obj,
		own.WriteOptions{FieldManager: m.FieldManager, FieldValidation: m.FieldValidation, DryRun: len(m.DryRun) > 0})
}

// Patch sends a patch of obj.
func (c *consistent) Patch(ctx context.Context, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
	m := (&client.PatchOptions{}).ApplyOptions(opts).AsPatchOptions()
	return c.cluster.Patch(ctx, obj, patch{p}, own.WriteOptions{
		FieldManager: m.FieldManager, FieldValidation: m.FieldValidation, DryRun: len(m.DryRun) > 0,
		Force: isTrue(m.Force),
	})
}

// Apply applies a configuration.
func (c *consistent) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	m := (&client.ApplyOptions{}).ApplyOptions(opts).AsPatchOptions()
	return c.cluster.Apply(ctx, obj,
		own.WriteOptions{FieldManager: m.FieldManager, DryRun: len(m.DryRun) > 0, Force: isTrue(m.Force)})
}

// Delete deletes obj.
func (c *consistent) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return c.cluster.Delete(ctx, obj, newDeletions((&client.DeleteOptions{}).ApplyOptions(opts)))
}

// DeleteAllOf deletes the objects that the options select.
func (c *consistent) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	o := (&client.DeleteAllOfOptions{}).ApplyOptions(opts)
	if o.Namespace != "" { // As in controller-runtime, it selects nothing where the kind has no namespaces.
		if namespaced, err := c.IsObjectNamespaced(obj); err != nil {
			return err
		} else if !namespaced {
			o.Namespace = ""
		}
	}
	d := newDeletions(&o.DeleteOptions)
	d.ListOptions = own.ListOptions{
		Namespace: o.Namespace, LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector,
		Limit: o.Limit, Continue: o.Continue,
	}
	return c.cluster.DeleteAllOf(ctx, obj, d)
}

// Status returns a client of the status subresource.
func (c *consistent) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource returns a client of a subresource.
func (c *consistent) SubResource(name string) client.SubResourceClient {
	return &subresource{SubResourceReader: c.Client.SubResource(name), own: c.cluster.SubResource(name)}
}

// subresource writes through Flyball's client, and reads from the server, as controller-runtime does.
type subresource struct {
	client.SubResourceReader
	own own.SubResourceClient
}

func (s *subresource) Create(ctx context.Context, obj, sub client.Object,
	opts ...client.SubResourceCreateOption,
) error {
	m := (&client.SubResourceCreateOptions{}).ApplyOptions(opts).AsCreateOptions()
	return s.own.Create(ctx, obj, sub,
		own.WriteOptions{FieldManager: m.FieldManager, FieldValidation: m.FieldValidation, DryRun: len(m.DryRun) > 0})
}

func (s *subresource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	o := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	m := o.AsUpdateOptions()
	return s.own.Update(ctx, obj, withBody(o.SubResourceBody, own.WriteOptions{
		FieldManager: m.FieldManager, FieldValidation: m.FieldValidation, DryRun: len(m.DryRun) > 0,
	}))
}

func (s *subresource) Patch(ctx context.Context, obj client.Object, p client.Patch,
	opts ...client.SubResourcePatchOption,
) error {
	o := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	m := o.AsPatchOptions()
	return s.own.Patch(ctx, obj, patch{p}, withBody(o.SubResourceBody, own.WriteOptions{
		FieldManager: m.FieldManager, FieldValidation: m.FieldValidation, DryRun: len(m.DryRun) > 0,
		Force: isTrue(m.Force),
	}))
}

func (s *subresource) Apply(ctx context.Context, obj runtime.ApplyConfiguration,
	opts ...client.SubResourceApplyOption,
) error {
	o := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	m := o.AsPatchOptions()
	w := own.WriteOptions{FieldManager: m.FieldManager, DryRun: len(m.DryRun) > 0, Force: isTrue(m.Force)}
	if o.SubResourceBody == nil {
		return s.own.Apply(ctx, obj, w)
	}
	of, err := plain(obj)
	if err != nil {
		return err
	}
	body, err := plain(o.SubResourceBody)
	if err != nil {
		return err
	}
	data, err := body.MarshalJSON()
	if err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	if err := s.own.Patch(ctx, of, patch{client.RawPatch(types.ApplyPatchType, data)}, withBody(body, w)); err != nil {
		return err
	}
	if data, err = body.MarshalJSON(); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	return json.Unmarshal(data, obj) // As controller-runtime does: into the object, not into the body.
}

// plain returns an apply configuration as an object.
func plain(configuration runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(configuration)
	if err != nil {
		return nil, fmt.Errorf("apply: %w", err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("apply: %w", err)
	}
	return u, nil
}

// withBody leaves out a nil body: an interface that holds a nil pointer is not nil.
func withBody(body client.Object, w own.WriteOptions) own.WriteOptions {
	if body != nil {
		w.Body = body
	}
	return w
}
