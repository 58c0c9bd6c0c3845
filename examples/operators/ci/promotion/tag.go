package promotion

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/ciconfig"
	"github.com/flyball-dev/flyball/examples/operators/ci/github"
	"github.com/flyball-dev/flyball/examples/operators/ci/imagestreamtag"
	"github.com/flyball-dev/flyball/reconcile"
)

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
