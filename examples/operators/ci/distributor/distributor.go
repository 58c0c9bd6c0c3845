package distributor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/ciconfig"
	"github.com/flyball-dev/flyball/examples/operators/ci/fleet"
	"github.com/flyball-dev/flyball/examples/operators/ci/imagestreamtag"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/source"
	"github.com/flyball-dev/flyball/workqueue"
)

// Name is the controller's name.
const Name = "test-images-distributor"

// Options configure the controller. The zero value works.
type Options struct {
	// RegistryDomain is the registry from which the hub's images are pulled. Empty means registry.ci.openshift.org.
	RegistryDomain string
	// Tags, Streams ("namespace/stream") and Namespaces are brought to all build clusters even if nobody requests them.
	Tags       map[imagestreamtag.Ref]bool
	Streams    map[string]bool
	Namespaces map[string]bool
	// ForbiddenRegistries are prefixes of images that are not brought anywhere.
	ForbiddenRegistries []string
	// IgnoreClusters are build clusters that get no images.
	IgnoreClusters map[string]bool
	// Workers is how many tags are worked on at once. Zero means 10.
	Workers int
	// Metrics count the imports. Nil counts nothing.
	Metrics *Metrics
}

// distributor reconciles keys.
type distributor struct {
	hub    client.Client
	builds map[string]client.Client
	agent  *ciconfig.Agent
	o      Options
	// failures counts the failed imports, by key.
	failures *backoff

	// streams are the hub's, tagImports those of all clusters. Event handlers read them because they must not block.
	streams    informer.Informer[*api.ImageStream]
	tagImports []informer.Informer[*api.TestImageStreamTagImport]
}

// Add adds the controller to the hub of the fleet. The caller runs agent. The fleet's caches should be those of
// [Caches].
func Add(f *fleet.Fleet, agent *ciconfig.Agent, o Options) error {
	o.RegistryDomain = cmp.Or(o.RegistryDomain, "registry.ci.openshift.org")
	o.Workers = cmp.Or(o.Workers, 10)
	d := &distributor{hub: f.Hub.Client, builds: map[string]client.Client{}, agent: agent, o: o, failures: newBackoff()}
	c := reconcile.New(Name, reconcile.Func[Key](d.Reconcile), reconcile.Options[Key]{
		Workers: o.Workers, Metrics: f.Hub.Manager.QueueMetrics(), Timeout: time.Minute, RateLimiter: d.failures,
	})
	var err error
	if d.streams, err = informer.For[*api.ImageStream](f.Hub.Manager.Informers()); err != nil {
		return err
	}
	tags := source.Kind(d.streams, imagestreamtag.Handler(d.keysOfTag))
	added := ciconfig.Added(agent, ciconfig.ByTestInput, d.keysOfConfig)
	wrong := []error{c.Watch(tags), c.Watch(added), d.watchTagImports(c, f.Hub, true)}
	for _, build := range f.Builds {
		if o.IgnoreClusters[build.Name] {
			continue
		}
		d.builds[build.Name] = build.Client
		wrong = append(wrong, d.watchTagImports(c, build, false), d.watchImports(c, build))
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	return f.Hub.Manager.Add(c)
}

// watchTagImports makes c watch the TestImageStreamTagImports of a cluster.
func (d *distributor) watchTagImports(c *reconcile.Controller[Key], in *fleet.Cluster, hub bool) error {
	tagImports, err := informer.For[*api.TestImageStreamTagImport](in.Manager.Informers())
	if err != nil {
		return err
	}
	err = tagImports.AddIndex(byTag, func(w *api.TestImageStreamTagImport) ([]string, error) {
		return []string{w.Spec.Namespace + "/" + w.Spec.Name}, nil
	})
	if err != nil {
		return err
	}
	d.tagImports = append(d.tagImports, tagImports)
	source := source.Kind(tagImports,
		handler.EnqueueMapped(func(_ context.Context, w *api.TestImageStreamTagImport) []Key {
			cluster := in.Name
			if hub {
				cluster = w.Spec.ClusterName
			}
			ref, err := imagestreamtag.New(w.Spec.Namespace, w.Spec.Name)
			if err != nil || cluster == "" || d.o.IgnoreClusters[cluster] {
				return nil
			}
			return []Key{{cluster, ref}}
		}))
	if !hub {
		source = fleet.Late(source)
	}
	return c.Watch(source)
}

// watchImports makes c watch its imports in a cluster. It queues an import that is answered, or deleted before it is
// answered. The deletion of an answered import is ignored, because the controller itself deletes it.
func (d *distributor) watchImports(c *reconcile.Controller[Key], in *fleet.Cluster) error {
	imports, err := informer.For[*api.ImageStreamImport](in.Manager.Informers())
	if err != nil {
		return err
	}
	queue := func(i *api.ImageStreamImport, q reconcile.Enqueuer[Key]) {
		if i.Labels[api.CreatedByLabel] == Name && len(i.Spec.Images) == 1 {
			q.Add(
				Key{
					in.Name,
					imagestreamtag.Ref{Namespace: i.Namespace, Stream: i.Spec.Stream, Tag: i.Spec.Images[0].To.Name},
				},
			)
		}
	}
	return c.Watch(fleet.Late(source.Kind(imports, handler.EventHandler[*api.ImageStreamImport, Key]{
		OnAdd: func(_ context.Context, i *api.ImageStreamImport, initial bool, q reconcile.Enqueuer[Key]) {
			if initial || isAnswered(i) {
				queue(i, q)
			}
		},
		OnUpdate: func(_ context.Context, old, i *api.ImageStreamImport, q reconcile.Enqueuer[Key]) {
			if isAnswered(i) && !isAnswered(old) {
				queue(i, q)
			}
		},
		OnDelete: func(_ context.Context, gone informer.Deleted[*api.ImageStreamImport], q reconcile.Enqueuer[Key]) {
			if !isAnswered(gone.Object) {
				queue(gone.Object, q)
			}
		},
	})))
}

func isAnswered(i *api.ImageStreamImport) bool { return len(i.Status.Images) > 0 }

// byTag is the index of TestImageStreamTagImports by their tag.
const byTag = "spec.tag"

// keysOfTag returns the keys of a tag of the hub in all build clusters, if it is needed there.
func (d *distributor) keysOfTag(_ context.Context, tag imagestreamtag.Ref) []Key {
	if !d.isNeeded(tag) {
		return nil
	}
	return d.everywhere(tag)
}

func (d *distributor) everywhere(tag imagestreamtag.Ref) (keys []Key) {
	for cluster := range d.builds {
		keys = append(keys, Key{cluster, tag})
	}
	return keys
}

// isNeeded reports whether tests begin with the tag, a TestImageStreamTagImport names it, or it is always brought.
func (d *distributor) isNeeded(tag imagestreamtag.Ref) bool {
	if d.o.Tags[tag] || d.o.Streams[tag.Namespace+"/"+tag.Stream] || d.o.Namespaces[tag.Namespace] ||
		d.agent.IsTestInput(tag) {
		return true
	}
	for _, tagImports := range d.tagImports {
		if found, err := tagImports.ByIndex(byTag, tag.String()); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// keysOfConfig returns the keys for a key of the index of test inputs: those of a tag, or of all tags of a stream.
func (d *distributor) keysOfConfig(_ context.Context, key string) (keys []Key) {
	if ref, err := imagestreamtag.Parse(key); err == nil {
		return d.everywhere(ref)
	}
	namespace, name, ok := ciconfig.ParseStreamKey(key)
	if !ok {
		return nil
	}
	stream, found := d.streams.Get(namespace, name)
	if !found {
		return nil // its tags come as events
	}
	for _, ref := range imagestreamtag.All(stream) {
		keys = append(keys, d.everywhere(ref)...)
	}
	return keys
}

// Key names a tag, and the cluster to bring it to.
type Key struct {
	Cluster string
	imagestreamtag.Ref
}

// String returns "cluster_namespace/stream:tag". It is unambiguous because a namespace has no underscore.
func (k Key) String() string { return k.Cluster + "_" + k.Ref.String() }

// ParseKey is the inverse of [Key.String].
func ParseKey(text string) (Key, error) {
	slash := strings.Index(text, "/")
	i := strings.LastIndex(text[:max(slash, 0)], "_")
	if i <= 0 {
		return Key{}, fmt.Errorf("%q is no key: want cluster_namespace/stream:tag", text)
	}
	ref, err := imagestreamtag.Parse(text[i+1:])
	return Key{text[:i], ref}, err
}

// backoff is the controller's rate limiter. A reconcile that requests an import returns no error, after which the loop
// forgets a key's failures. But the import has not succeeded until it is answered. So this limiter keeps the failures
// while an import is under way, and a registry that fails is asked less and less often.
type backoff struct {
	workqueue.RateLimiter[Key]

	mu sync.Mutex
	// underWay holds the keys that wait for the answer to an import.
	underWay map[Key]bool
}

func newBackoff() *backoff {
	return &backoff{RateLimiter: workqueue.DefaultControllerRateLimiter[Key](), underWay: map[Key]bool{}}
}

// set records whether an import of the key is under way.
func (b *backoff) set(k Key, underWay bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if underWay {
		b.underWay[k] = true
	} else {
		delete(b.underWay, k)
	}
}

// Forget implements workqueue.RateLimiter.
func (b *backoff) Forget(k Key) {
	b.mu.Lock()
	keep := b.underWay[k]
	b.mu.Unlock()
	if !keep {
		b.RateLimiter.Forget(k)
	}
}

// Metrics count the imports that were answered. It is a prometheus.Collector.
//
// Concurrency: all methods may be called from any goroutine. A nil *Metrics counts nothing.
type Metrics struct{ succeeded, failed *prometheus.CounterVec }

// NewMetrics returns metrics whose counters are zero.
func NewMetrics() *Metrics {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help},
			[]string{"controller", "cluster", "namespace", "name"})
	}
	return &Metrics{
		succeeded: counter("imagestream_successful_import_count", "Imports that succeeded."),
		failed:    counter("imagestream_failed_import_count", "Imports that failed."),
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	m.succeeded.Describe(out)
	m.failed.Describe(out)
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	m.succeeded.Collect(out)
	m.failed.Collect(out)
}

func (m *Metrics) count(k Key, succeeded bool) {
	if m == nil {
		return
	}
	which := m.failed
	if succeeded {
		which = m.succeeded
	}
	which.WithLabelValues(Name, k.Cluster, k.Namespace, k.Name()).Inc()
}
