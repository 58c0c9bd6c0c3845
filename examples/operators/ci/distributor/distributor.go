package distributor

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/ciconfig"
	"github.com/flyball-dev/flyball/examples/operators/ci/fleet"
	"github.com/flyball-dev/flyball/examples/operators/ci/imagestreamtag"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
)

// Name is the controller's name.
const Name = "test-images-distributor"

// Options configure the controller. The zero value works.
type Options struct {
	// RegistryDomain is where the images of the hub are pulled from. Empty means registry.ci.openshift.org.
	RegistryDomain string
	// Tags, Streams ("namespace/stream") and Namespaces are brought to all build clusters although nobody asks for them.
	Tags       map[imagestreamtag.Ref]bool
	Streams    map[string]bool
	Namespaces map[string]bool
	// ForbiddenRegistries are prefixes of what is not brought anywhere.
	ForbiddenRegistries []string
	// IgnoreClusters are build clusters that nothing is brought to.
	IgnoreClusters map[string]bool
	// Workers is how many tags are looked at at once. Zero means 10.
	Workers int
	// Metrics count the imports, unless nil.
	Metrics *Metrics
}

// distributor reconciles keys.
type distributor struct {
	hub    client.Client
	builds map[string]client.Client
	agent  *ciconfig.Agent
	o      Options
	// failures are those of imports, by key.
	failures *backoff

	// streams are the hub's, and wishes those of all clusters: for event handlers, which must not wait.
	streams informer.Informer[*api.ImageStream]
	wishes  []informer.Informer[*api.TestImageStreamTagImport]
}

// Add adds the controller to the hub of the fleet. agent is run by the caller. The fleet's caches should be those of [Caches].
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
	tags := reconcile.Kind(d.streams, imagestreamtag.Handler(d.keysOfTag))
	added := ciconfig.Added(agent, ciconfig.ByTestInput, d.keysOfConfig)
	wrong := []error{c.Watch(tags), c.Watch(added), d.watchWishes(c, f.Hub, true)}
	for _, build := range f.Builds {
		if o.IgnoreClusters[build.Name] {
			continue
		}
		d.builds[build.Name] = build.Client
		wrong = append(wrong, d.watchWishes(c, build, false), d.watchImports(c, build))
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	return f.Hub.Manager.Add(c)
}

// watchWishes has c hear of the TestImageStreamTagImports of a cluster.
func (d *distributor) watchWishes(c *reconcile.Controller[Key], in *fleet.Cluster, hub bool) error {
	wishes, err := informer.For[*api.TestImageStreamTagImport](in.Manager.Informers())
	if err != nil {
		return err
	}
	err = wishes.AddIndex(byTag, func(w *api.TestImageStreamTagImport) ([]string, error) {
		return []string{w.Spec.Namespace + "/" + w.Spec.Name}, nil
	})
	if err != nil {
		return err
	}
	d.wishes = append(d.wishes, wishes)
	source := reconcile.Kind(wishes, reconcile.EnqueueMapped(func(_ context.Context, w *api.TestImageStreamTagImport) []Key {
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

// watchImports has c hear of what becomes of its imports: that one is answered, or is taken away before it is. That an answered one
// is taken away is its own doing, and no news.
func (d *distributor) watchImports(c *reconcile.Controller[Key], in *fleet.Cluster) error {
	imports, err := informer.For[*api.ImageStreamImport](in.Manager.Informers())
	if err != nil {
		return err
	}
	queue := func(i *api.ImageStreamImport, q reconcile.Enqueuer[Key]) {
		if i.Labels[api.CreatedByLabel] == Name && len(i.Spec.Images) == 1 {
			q.Add(Key{in.Name, imagestreamtag.Ref{Namespace: i.Namespace, Stream: i.Spec.Stream, Tag: i.Spec.Images[0].To.Name}})
		}
	}
	return c.Watch(fleet.Late(reconcile.Kind(imports, reconcile.EventHandler[*api.ImageStreamImport, Key]{
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

// byTag is the index of wishes by the tag that they are about.
const byTag = "spec.tag"

// keysOfTag are those of a tag of the hub in all build clusters, if somebody needs it there.
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

// isNeeded says whether the tag is one that tests begin with, that somebody wishes for, or that is always brought.
func (d *distributor) isNeeded(tag imagestreamtag.Ref) bool {
	if d.o.Tags[tag] || d.o.Streams[tag.Namespace+"/"+tag.Stream] || d.o.Namespaces[tag.Namespace] || d.agent.IsTestInput(tag) {
		return true
	}
	for _, wishes := range d.wishes {
		if found, err := wishes.ByIndex(byTag, tag.String()); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// keysOfConfig are those of a key of the index of test inputs: of a tag, or of all tags of a stream.
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
