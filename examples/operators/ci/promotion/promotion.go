package promotion

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/ciconfig"
	"github.com/flyball-dev/flyball/examples/operators/ci/fleet"
	"github.com/flyball-dev/flyball/examples/operators/ci/github"
	"github.com/flyball-dev/flyball/examples/operators/ci/imagestreamtag"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/source"
)

// The names of the controllers: of tags, of new configuration, of jobs.
const (
	Name        = "promotion-reconciler"
	ConfigName  = "promotion-config"
	CreatorName = "promotion-job-creator"
)

// JobNamespace is the namespace of ProwJobs.
const JobNamespace = "ci"

// Options configure the controllers. The zero value works.
type Options struct {
	// Ignore selects tags to ignore: those whose "namespace/stream:tag" matches one of the expressions.
	Ignore []*regexp.Regexp
	// Since is the age beyond which a tag is ignored. Zero means 15 days.
	Since time.Duration
	// Workers and CreatorWorkers are how many tags and jobs are worked on at once. Zero means 100 and 10.
	Workers, CreatorWorkers int
	// Metrics count the jobs. Nil counts nothing.
	Metrics *Metrics
}

func (o Options) withDefaults() Options {
	o.Since = cmp.Or(o.Since, 15*24*time.Hour)
	o.Workers, o.CreatorWorkers = cmp.Or(o.Workers, 100), cmp.Or(o.CreatorWorkers, 10)
	return o
}

func (o *Options) ignores(tag imagestreamtag.Ref) bool {
	return slices.ContainsFunc(o.Ignore, func(e *regexp.Regexp) bool { return e.MatchString(tag.String()) })
}

// promoter is what the controllers share.
type promoter struct {
	hub    client.Client
	agent  *ciconfig.Agent
	github github.Client
	o      Options
	wanted *source.Output[Job]
}

// Add adds the controllers to the hub of the fleet. The caller runs agent.
func Add(f *fleet.Fleet, agent *ciconfig.Agent, gh github.Client, o Options) error {
	p := &promoter{
		hub: f.Hub.Client, agent: agent, github: gh, o: o.withDefaults(),
		wanted: source.NewOutput[Job]("promotion"),
	}
	m := f.Hub.Manager
	streams, err := informer.For[*api.ImageStream](m.Informers())
	if err != nil {
		return err
	}
	tags := source.Kind(streams,
		imagestreamtag.Handler(func(_ context.Context, tag imagestreamtag.Ref) []reconcile.Request {
			if p.o.ignores(tag) {
				return nil
			}
			return []reconcile.Request{tag.Request()}
		}))
	if err := add(m, Name, reconcile.Func[reconcile.Request](p.reconcileTag), p.o.Workers, tags); err != nil {
		return err
	}
	configured := ciconfig.Added(agent, ciconfig.ByPromotedTag,
		func(_ context.Context, key string) []string { return []string{key} })
	if err := add(m, ConfigName, reconcile.Func[string](p.reconcileConfig), p.o.CreatorWorkers,
		configured); err != nil {
		return err
	}
	return add(m, CreatorName, reconcile.Func[Job](p.reconcileJob), p.o.CreatorWorkers, reconcile.Source[Job](p.wanted))
}

// add adds a controller with one source.
func add[K comparable](m *manager.Manager, name string, r reconcile.Reconciler[K], workers int,
	s reconcile.Source[K],
) error {
	c := reconcile.New(name, r, reconcile.Options[K]{Workers: workers, Metrics: m.QueueMetrics(), Timeout: time.Minute})
	if err := c.Watch(s); err != nil {
		return err
	}
	return m.Add(c)
}

// Job is a request to promote what a branch builds, at a commit.
type Job struct{ Org, Repo, Branch, Commit string }

// String returns "org|repo|branch|commit".
func (j Job) String() string { return strings.Join([]string{j.Org, j.Repo, j.Branch, j.Commit}, "|") }

// name returns the name of the ProwJob after n jobs for the same commit have ended.
func (j Job) name(n int) string {
	digest := sha256.Sum256([]byte(j.String()))
	return fmt.Sprintf("promotion-%x-%d", digest[:10], n)
}

// labelValue returns text as a label's value, or a digest of it if text is not valid there.
func labelValue(text string) string {
	if len(validation.IsValidLabelValue(text)) == 0 {
		return text
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:40]
}

// selected returns the labels that select the jobs of a repository.
func (j Job) selected() map[string]string {
	return map[string]string{
		api.OrgLabel: labelValue(j.Org), api.RepoLabel: labelValue(j.Repo),
		api.TypeLabel: string(api.PostsubmitJob),
	}
}

// reconcileJob creates the ProwJob, unless one for the commit is running.
func (p *promoter) reconcileJob(ctx context.Context, j Job) (reconcile.Result, error) {
	wanted, err := p.agent.PromotionJob(j.Org, j.Repo, j.Branch, api.PromotionLabel)
	if err != nil {
		return reconcile.Result{}, reconcile.Terminal(err)
	}
	jobs, err := p.jobsFor(ctx, j)
	if err != nil {
		return reconcile.Result{}, err
	}
	for i := range jobs {
		if !jobs[i].Complete() {
			klog.FromContext(ctx).V(2).Info("A job for the commit is under way", "prowJob", klog.KObj(&jobs[i]))
			return reconcile.Result{}, nil
		}
	}
	labels := maps.Clone(wanted.Labels)
	maps.Copy(labels, j.selected())
	labels[api.JobLabel], labels[api.CreatedByLabel] = labelValue(wanted.Name), CreatorName
	job := &api.ProwJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: JobNamespace, Name: j.name(len(jobs)), Labels: labels},
		Spec: api.ProwJobSpec{
			Type: api.PostsubmitJob, Job: wanted.Name, Cluster: wanted.Cluster,
			Refs: &api.Refs{Org: j.Org, Repo: j.Repo, BaseRef: j.Branch, BaseSHA: j.Commit},
		},
	}
	if err := p.hub.Create(ctx, job); err != nil {
		if client.IgnoreAlreadyExists(err) == nil {
			return reconcile.Result{}, nil // the cache is late, or another process was faster
		}
		return reconcile.Result{}, fmt.Errorf("create ProwJob: %w", err)
	}
	klog.FromContext(ctx).Info("Created ProwJob", "prowJob", klog.KObj(job), "job", wanted.Name)
	p.o.Metrics.created(j)
	return reconcile.Result{}, nil
}

// jobsFor returns the existing promotion jobs for the commit.
func (p *promoter) jobsFor(ctx context.Context, j Job) (jobs []api.ProwJob, err error) {
	var list api.ProwJobList
	selected := client.MatchingLabels(j.selected())
	if err := p.hub.List(ctx, &list, client.InNamespace(JobNamespace), selected,
		client.HasLabels{api.PromotionLabel}); err != nil {
		return nil, fmt.Errorf("list ProwJobs: %w", err)
	}
	for _, job := range list.Items {
		if r := job.Spec.Refs; r != nil && r.BaseRef == j.Branch && r.BaseSHA == j.Commit {
			jobs = append(jobs, job)
		}
	}
	return jobs, nil
}

// reconcileTag requests a job if the image of a tag is behind its branch.
func (p *promoter) reconcileTag(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	ref, err := imagestreamtag.New(r.Namespace, r.Name)
	if err != nil {
		return reconcile.Result{}, reconcile.Terminal(err)
	}
	tag, err := imagestreamtag.Get(ctx, p.hub, ref)
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if time.Since(tag.Created.Time) > p.o.Since {
		return reconcile.Result{}, nil
	}
	config, err := p.promoterOf(ref)
	if config == nil || err != nil {
		return reconcile.Result{}, err
	}
	commit, err := commitOf(ctx, p.hub, tag)
	if err != nil {
		return reconcile.Result{}, err
	}
	head, err := p.head(ctx, config)
	if err != nil || commit == head {
		return reconcile.Result{}, err
	}
	behind, err := p.isBehind(ctx, ref, head)
	if !behind || err != nil {
		return reconcile.Result{}, err
	}
	klog.FromContext(ctx).Info("Image is behind its branch", "commit", commit, "head", head)
	p.wanted.Emit(ctx, Job{config.Metadata.Org, config.Metadata.Repo, config.Metadata.Branch, head})
	return reconcile.Result{}, nil
}

// isBehind asks the server: a late cache would cause a job for an image that has been built in the meantime. It is
// called only for tags that seem to be behind.
func (p *promoter) isBehind(ctx context.Context, ref imagestreamtag.Ref, head string) (bool, error) {
	tag, err := imagestreamtag.Get(ctx, p.hub, ref, client.Live)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	commit, err := commitOf(ctx, p.hub, tag)
	return commit != head, err
}

// promoterOf returns the configuration that promotes to the tag, or nil if none does.
//
// Errors: when several would. That happens for a while when a component is moved.
func (p *promoter) promoterOf(ref imagestreamtag.Ref) (*ciconfig.Config, error) {
	configs := p.agent.Promoters(ref)
	if len(configs) > 1 {
		var who []string
		for _, c := range configs {
			who = append(who, c.Metadata.String())
		}
		return nil, fmt.Errorf("%s is promoted to by several configurations: %s", ref, strings.Join(who, ", "))
	}
	if len(configs) == 0 || !slices.Contains(configs[0].Promoted(), ref) {
		return nil, nil
	}
	return configs[0], nil
}

// head returns the commit that the branch of a configuration is at.
func (p *promoter) head(ctx context.Context, c *ciconfig.Config) (string, error) {
	head, err := p.github.GetRef(ctx, c.Metadata.Org, c.Metadata.Repo, "heads/"+c.Metadata.Branch)
	if err != nil {
		err = fmt.Errorf("get head of %s: %w", c.Metadata, err)
		if github.Permanent(err) {
			err = reconcile.Terminal(err)
		}
	}
	return head, err
}

// errNoImage means that nothing is known of an image yet. Sometimes it is written after the stream that names it.
var errNoImage = errors.New("nothing is known of its image")

// commitOf returns the commit that a tag's image was built from.
//
// Errors: terminal, if the image does not have that information.
func commitOf(ctx context.Context, c client.Reader, tag *imagestreamtag.Tag) (string, error) {
	if tag.Image == nil {
		return "", fmt.Errorf("%s: %w", tag.Ref, errNoImage)
	}
	labels, err := tag.Labels(ctx, c)
	if err != nil {
		return "", err
	}
	commit := labels[api.CommitLabel]
	if commit == "" {
		return "", reconcile.Terminal(fmt.Errorf("image of %s has no label %s", tag.Ref, api.CommitLabel))
	}
	if source := labels[api.SourceLabel]; source != "" {
		if _, _, err := repository(source); err != nil {
			return "", reconcile.Terminal(fmt.Errorf("image of %s: %w", tag.Ref, err))
		}
	}
	return commit, nil
}

// repository parses a source location, "https://github.com/org/repo" or "….git".
func repository(location string) (org, repo string, err error) {
	u, err := url.Parse(location)
	if err != nil {
		return "", "", fmt.Errorf("source location: %w", err)
	}
	parts := strings.Split(strings.Trim(strings.TrimSuffix(u.Path, ".git"), "/"), "/")
	if len(parts) != 2 || parts[0] == "" || parts[1] == "" {
		return "", "", fmt.Errorf("source location %q names no repository", location)
	}
	return parts[0], parts[1], nil
}

// buildCache is the namespace of images that only speed up builds, so they need no promotion.
const buildCache = "build-cache"

// reconcileConfig requests a job if a tag that the configuration promotes to does not exist yet. It is called for new
// configuration, and for all configuration when the process starts.
func (p *promoter) reconcileConfig(ctx context.Context, key string) (reconcile.Result, error) {
	ref, err := imagestreamtag.Parse(key)
	if err != nil {
		return reconcile.Result{}, reconcile.Terminal(err)
	}
	if ref.Namespace == buildCache || p.o.ignores(ref) {
		return reconcile.Result{}, nil
	}
	if _, err = imagestreamtag.Get(ctx, p.hub, ref); !apierrors.IsNotFound(err) {
		return reconcile.Result{}, err
	}
	config, err := p.promoterOf(ref)
	if config == nil || err != nil {
		return reconcile.Result{}, err
	}
	head, err := p.head(ctx, config)
	if err != nil {
		return reconcile.Result{}, err
	}
	job := Job{config.Metadata.Org, config.Metadata.Repo, config.Metadata.Branch, head}
	if jobs, err := p.jobsFor(ctx, job); err != nil || len(jobs) > 0 {
		return reconcile.Result{}, err // there has been a job; another one at each start would be too many
	}
	p.wanted.Emit(ctx, job)
	return reconcile.Result{}, nil
}

// Metrics count the jobs that were created. It is a prometheus.Collector.
//
// Concurrency: all methods may be called from any goroutine. A nil *Metrics counts nothing.
type Metrics struct{ *prometheus.CounterVec }

// NewMetrics returns metrics whose counters are zero.
func NewMetrics() *Metrics {
	return &Metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "promotion_job_creator_prowjobs_created",
		Help: "ProwJobs that were created because images were behind their branch.",
	}, []string{"org", "repo", "branch"})}
}

func (m *Metrics) created(j Job) {
	if m != nil {
		m.WithLabelValues(j.Org, j.Repo, j.Branch).Inc()
	}
}
