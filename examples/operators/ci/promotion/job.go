package promotion

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/reconcile"
)

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
