package ciconfig

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/examples/operators/ci/imagestreamtag"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// Index names an index of the configurations.
type Index string

const (
	// ByPromotedTag indexes a configuration by every tag that it promotes to ("namespace/stream:tag"), including tags
	// whose promotion is disabled.
	ByPromotedTag Index = "release-build-config-by-image-stream-tag"
	// ByTestInput indexes a configuration by every tag that its builds and tests begin with. If they begin with all
	// tags of a stream, the key is that of [StreamKey].
	ByTestInput Index = "config-by-test-input-imagestreamtag"
)

// StreamKey returns the key of [ByTestInput] for all tags of a stream.
func StreamKey(namespace, name string) string { return streamPrefix + namespace + "/" + name }

const streamPrefix = "imagestream_"

var indexes = map[Index]func(*Config) []string{
	ByPromotedTag: func(c *Config) (keys []string) {
		for _, ref := range c.promoted(func(Target) bool { return true }) {
			keys = append(keys, ref.String())
		}
		return keys
	},
	ByTestInput: (*Config).inputs,
}

// Options configure an [Agent]. The zero value works.
type Options struct {
	// Interval is the time between two reads of the folders. Zero means 5 s. (Polling works everywhere; a ConfigMap's
	// files are behind symbolic links that are replaced, which makes file notifications unreliable.)
	Interval time.Duration
}

// Agent holds the configuration that is in the folders.
//
// Concurrency: all methods may be called from any goroutine. What they return is shared and must not be changed.
type Agent struct {
	configDir, jobsDir string
	interval           time.Duration

	mu      sync.RWMutex
	now     *state
	byKey   map[Index]map[string][]*Config
	err     error // of the last read; the previous configuration stays in force
	sources map[*source]bool
}

// New reads the configurations in configDir and the jobs in jobsDir. They are not read again before [Agent.Run].
//
// Errors: files that cannot be read or are malformed.
func New(configDir, jobsDir string, o Options) (*Agent, error) {
	o.Interval = cmp.Or(o.Interval, 5*time.Second)
	first, err := load(configDir, jobsDir)
	if err != nil {
		return nil, err
	}
	a := &Agent{configDir: configDir, jobsDir: jobsDir, interval: o.Interval, sources: map[*source]bool{}}
	a.now, a.byKey = first, index(first.configs)
	return a, nil
}

func index(configs []*Config) map[Index]map[string][]*Config {
	all := map[Index]map[string][]*Config{}
	for name, keys := range indexes {
		all[name] = map[string][]*Config{}
		for _, c := range configs {
			for _, key := range keys(c) {
				all[name][key] = append(all[name][key], c)
			}
		}
	}
	return all
}

// Name implements the manager's naming of runnables.
func (a *Agent) Name() string { return "ci-configuration" }

// NeedLeaderElection returns false: followers read the configuration, too.
func (a *Agent) NeedLeaderElection() bool { return false }

// Health returns the error of the last read of the folders.
func (a *Agent) Health() error {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.err
}

// Run reads the folders at each interval until ctx is done.
func (a *Agent) Run(ctx context.Context) error {
	tick := time.NewTicker(a.interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			a.reload(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// reload reads the folders, puts a valid configuration in force, and tells the sources what was added.
func (a *Agent) reload(ctx context.Context) {
	next, err := load(a.configDir, a.jobsDir)
	a.mu.Lock()
	if err != nil {
		if a.err == nil || a.err.Error() != err.Error() {
			klog.FromContext(ctx).Error(err, "Configuration is not usable, the last one stays in force")
		}
		a.err = err
		a.mu.Unlock()
		return
	}
	a.err = nil
	if maps.Equal(a.now.text, next.text) {
		a.mu.Unlock()
		return
	}
	klog.FromContext(ctx).Info("Configuration changed", "configurations", len(next.configs))
	before := a.byKey
	a.now, a.byKey = next, index(next.configs)
	after, sources := a.byKey, slices.Collect(maps.Keys(a.sources))
	a.mu.Unlock()
	for _, s := range sources {
		s.tell(added(before[s.index], after[s.index]))
	}
}

// added returns the keys, sorted, that have a configuration which they did not have before.
func added(before, after map[string][]*Config) (keys []string) {
	for key, configs := range after {
		known := map[Metadata]bool{}
		for _, c := range before[key] {
			known[c.Metadata] = true
		}
		if slices.ContainsFunc(configs, func(c *Config) bool { return !known[c.Metadata] }) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Promoters returns the configurations that promote to the tag, or would if promotion were not disabled.
func (a *Agent) Promoters(tag imagestreamtag.Ref) []*Config {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.byKey[ByPromotedTag][tag.String()]
}

// IsTestInput reports whether some build or test begins with the tag.
func (a *Agent) IsTestInput(tag imagestreamtag.Ref) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	inputs := a.byKey[ByTestInput]
	return len(inputs[tag.String()]) > 0 || len(inputs[StreamKey(tag.Namespace, tag.Stream)]) > 0
}

// PromotionJob returns the job that promotes what a branch builds.
//
// Errors: when there is none, or more than one.
func (a *Agent) PromotionJob(org, repo, branch, label string) (*Postsubmit, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	var found *Postsubmit
	for i := range a.now.jobs[org+"/"+repo] {
		job := &a.now.jobs[org+"/"+repo][i]
		if job.Labels[label] == "" || !job.ShouldRun(branch) {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("branch %s of %s/%s has several promotion jobs: %s, %s", branch, org, repo,
				found.Name, job.Name)
		}
		found = job
	}
	if found == nil {
		return nil, fmt.Errorf("branch %s of %s/%s has no promotion job", branch, org, repo)
	}
	return found, nil
}

// ParseStreamKey is the inverse of [StreamKey]. ok is false for other keys.
func ParseStreamKey(key string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(key, streamPrefix)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "/")
}

// PromotedBy returns the tags that the configurations of a branch promote to.
func (a *Agent) PromotedBy(org, repo, branch string) (tags []imagestreamtag.Ref) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, c := range a.now.configs {
		if m := c.Metadata; m.Org == org && m.Repo == repo && m.Branch == branch {
			tags = append(tags, c.Promoted()...)
		}
	}
	return tags
}

// Added returns a source. It emits what keys returns for each index key that gains a configuration. At the start these
// are all keys, so that nothing is missed while the process was not running; later they are the changes. It does not
// report removals.
func Added[K comparable](a *Agent, index Index, keys func(ctx context.Context, key string) []K) reconcile.Source[K] {
	return &feed[K]{agent: a, source: &source{index: index, changed: make(chan struct{}, 1)}, keys: keys}
}

// source delivers the keys of one index.
type source struct {
	index Index
	// changed signals Run that pending has keys. The goroutine that adds the keys sends, and Run receives. Capacity 1;
	// never closed.
	changed chan struct{}

	mu      sync.Mutex
	pending map[string]bool
}

// tell adds keys. It never blocks.
func (s *source) tell(keys []string) {
	if len(keys) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		s.pending = map[string]bool{}
	}
	for _, key := range keys {
		s.pending[key] = true
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *source) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := slices.Sorted(maps.Keys(s.pending))
	s.pending = nil
	return keys
}

type feed[K comparable] struct {
	agent  *Agent
	source *source
	keys   func(context.Context, string) []K
}

// String implements reconcile.Source.
func (f *feed[K]) String() string { return string(f.source.index) }

// Health implements reconcile.Source.
func (f *feed[K]) Health() error { return nil }

// Repeats implements reconcile.Source.
func (f *feed[K]) Repeats() bool { return false }

// Run implements reconcile.Source.
func (f *feed[K]) Run(ctx context.Context, out *reconcile.Sink[K], synced func()) error {
	f.agent.subscribe(f.source)
	defer f.agent.unsubscribe(f.source)
	f.hand(ctx, out)
	synced()
	for {
		select {
		case <-f.source.changed:
			f.hand(ctx, out)
		case <-ctx.Done():
			return nil
		}
	}
}

func (f *feed[K]) hand(ctx context.Context, out *reconcile.Sink[K]) {
	for _, indexKey := range f.source.take() {
		q := out.For(workqueue.Cause{Source: f.String(), Event: "Added", Object: indexKey, Time: time.Now()})
		for _, key := range f.keys(ctx, indexKey) {
			q.Add(key)
		}
	}
}

// subscribe makes s receive all present keys, and every change from now on.
func (a *Agent) subscribe(s *source) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sources[s] = true
	s.tell(slices.Collect(maps.Keys(a.byKey[s.index])))
}

func (a *Agent) unsubscribe(s *source) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.sources, s)
}
