package ephemeralcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/imagestreamtag"
	"github.com/flyball-dev/flyball/reconcile"
)

// begin creates the job of ec, or finds the one that an earlier process created.
func (p *provisioner) begin(ctx context.Context, ec *api.EphemeralCluster) (reconcile.Result, error) {
	if err := p.o.validate(ec); err != nil {
		ec.Status.Phase = api.Failed
		set(ec, api.ProwJobCreating, false, api.ValidationFailureReason, err.Error())
		return reconcile.Result{}, reconcile.Terminal(err)
	}
	jobs, err := p.jobsOf(ctx, ec)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(jobs) > 1 {
		err := fmt.Errorf("several ProwJobs are bound: %s", strings.Join(names(jobs), ", "))
		ec.Status.Phase = api.Failed
		set(ec, api.ProwJobCreating, false, api.TooManyProwJobsBoundReason, err.Error())
		return reconcile.Result{}, reconcile.Terminal(err)
	}
	if len(jobs) == 1 {
		if err := p.addFinalizer(ctx, ec); err != nil {
			return reconcile.Result{}, err
		}
		return p.bind(ec, &jobs[0]), nil
	}
	if life := p.o.lifeOf(ec, time.Now()); life.over() { // no process was running to make it in time
		ec.Status.Phase = api.Failed
		set(ec, api.ProwJobCreating, false, api.TimeToLiveOverReason, life.String())
		return reconcile.Result{}, nil
	}
	job, err := p.o.jobFor(ec)
	if err != nil {
		ec.Status.Phase = api.Failed
		set(ec, api.ProwJobCreating, true, api.CIOperatorJobsGenerateFailureReason, err.Error())
		return reconcile.Result{}, reconcile.Terminal(err)
	}
	if err := p.addFinalizer(ctx, ec); err != nil { // before there is something to finalize
		return reconcile.Result{}, err
	}
	if err := p.create(ctx, job); err != nil {
		set(ec, api.ProwJobCreating, true, api.CIOperatorJobsGenerateFailureReason, err.Error())
		return reconcile.Result{}, err
	}
	klog.FromContext(ctx).Info("Created ProwJob", "prowJob", klog.KObj(job))
	return p.bind(ec, job), nil
}

// create creates the job, unless it exists: the cache of a process that has just started may not have it yet.
func (p *provisioner) create(ctx context.Context, job *api.ProwJob) error {
	err := p.hub.Create(ctx, job)
	if apierrors.IsAlreadyExists(err) {
		err = p.hub.Get(ctx, client.ObjectKeyFromObject(job), job, client.Live)
	}
	if err != nil {
		return fmt.Errorf("create ProwJob: %w", err)
	}
	return nil
}

func (p *provisioner) bind(ec *api.EphemeralCluster, job *api.ProwJob) reconcile.Result {
	ec.Status.ProwJobID, ec.Status.ProwJobURL, ec.Status.Phase = job.Name, job.Status.URL, api.Provisioning
	set(ec, api.ProwJobCreating, false, api.ProwJobCreatedReason, "ProwJob has been properly created")
	return reconcile.Result{RequeueAfter: p.o.Polling}
}

// jobsOf returns the jobs that run for ec, without those for an earlier EphemeralCluster of the same name.
func (p *provisioner) jobsOf(ctx context.Context, ec *api.EphemeralCluster) (jobs []api.ProwJob, err error) {
	var list api.ProwJobList
	if err := p.hub.List(ctx, &list, client.InNamespace(JobNamespace),
		client.MatchingLabels{api.EphemeralClusterLabel: ec.Name}); err != nil {
		return nil, fmt.Errorf("list ProwJobs: %w", err)
	}
	for _, job := range list.Items {
		if uid := job.Annotations[uidAnnotation]; uid == "" || uid == string(ec.UID) {
			jobs = append(jobs, job)
		}
	}
	return jobs, nil
}

func names(jobs []api.ProwJob) (out []string) {
	for _, job := range jobs {
		out = append(out, job.Name)
	}
	return out
}

const (
	// testName is the name of the test that the job runs, and of the Secret that it writes the credentials to.
	testName = "cluster-provisioning"
	// uidAnnotation distinguishes the jobs of two EphemeralClusters of the same name.
	uidAnnotation = "ci.openshift.io/ephemeral-cluster-uid"
)

// defaultResources are the resources of a job's steps, unless ec sets others.
var defaultResources = map[string]runtime.RawExtension{
	"*": {Raw: []byte(`{"requests":{"cpu":"200m","memory":"400Mi"}}`)},
}

// ciOperatorConfig is the part of ci-operator's configuration that is made here.
type ciOperatorConfig struct {
	BaseImages     map[string]runtime.RawExtension `json:"base_images"`
	BuildRoot      *runtime.RawExtension           `json:"build_root,omitempty"`
	ExternalImages map[string]runtime.RawExtension `json:"external_images,omitempty"`
	Releases       map[string]runtime.RawExtension `json:"releases,omitempty"`
	Resources      map[string]runtime.RawExtension `json:"resources"`
	Tests          []ciOperatorTest                `json:"tests"`
}

type ciOperatorTest struct {
	As           string                `json:"as"`
	ClusterClaim *runtime.RawExtension `json:"cluster_claim,omitempty"`
	Steps        ciOperatorSteps       `json:"steps"`
}

type ciOperatorSteps struct {
	ClusterProfile string            `json:"cluster_profile,omitempty"`
	Env            map[string]string `json:"env,omitempty"`
	// Test waits for the signal that the cluster is no longer needed.
	Test     []map[string]string `json:"test"`
	Workflow string              `json:"workflow"`
}

// ciOperatorConfigOf returns the configuration for ci-operator, as YAML.
func (o *Options) ciOperatorConfigOf(ec *api.EphemeralCluster) (string, error) {
	spec := &ec.Spec.CIOperator
	if spec.Test.ClusterClaim == nil && len(spec.Releases) == 0 {
		return "", errors.New("releases are needed to install a cluster")
	}
	cli, err := imagestreamtag.Parse(o.CLIImage)
	if err != nil {
		return "", fmt.Errorf("image of the CLI: %w", err)
	}
	reference, err := json.Marshal(map[string]string{"namespace": cli.Namespace, "name": cli.Stream, "tag": cli.Tag})
	if err != nil {
		return "", err
	}
	c := ciOperatorConfig{
		BaseImages: maps.Clone(spec.BaseImages), BuildRoot: spec.BuildRoot, ExternalImages: spec.ExternalImages,
		Releases: spec.Releases, Resources: spec.Resources,
		Tests: []ciOperatorTest{{As: testName, ClusterClaim: spec.Test.ClusterClaim, Steps: ciOperatorSteps{
			ClusterProfile: spec.Test.ClusterProfile, Env: spec.Test.Env, Workflow: spec.Test.Workflow,
			Test: []map[string]string{
				{"as": "wait-test-complete", "cli": "latest", "commands": "wait-test-complete.sh", "from": "cli"},
			},
		}}},
	}
	if c.BaseImages == nil {
		c.BaseImages = map[string]runtime.RawExtension{}
	}
	c.BaseImages["cli"] = runtime.RawExtension{Raw: reference}
	if len(c.Resources) == 0 {
		c.Resources = defaultResources
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("write ci-operator's configuration: %w", err)
	}
	return string(text), nil
}

// jobFor returns the ProwJob of ec. Its name depends on ec alone.
func (o *Options) jobFor(ec *api.EphemeralCluster) (*api.ProwJob, error) {
	config, err := o.ciOperatorConfigOf(ec)
	if err != nil {
		return nil, err
	}
	name := "ephemeralcluster-" + ec.Name
	if run := ec.Annotations[api.PipelineRunNameAnnotation]; run != "" {
		name = "ephemeralcluster-" + run
		if task := ec.Annotations[api.TaskRunNameAnnotation]; task != "" {
			name += "-" + task
		}
	}
	return &api.ProwJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: JobNamespace, Name: "ephemeralcluster-" + string(ec.UID),
			Labels: map[string]string{
				api.EphemeralClusterLabel: ec.Name, api.CreatedByLabel: Name,
				api.TypeLabel: string(api.PeriodicJob),
			},
			Annotations: map[string]string{uidAnnotation: string(ec.UID)},
		},
		Spec: api.ProwJobSpec{
			Type: api.PeriodicJob, Job: name, Cluster: o.BuildCluster,
			Args: []string{"--input-hash=" + ec.Name, "--target=" + testName},
			Env:  map[string]string{"UNRESOLVED_CONFIG": config},
		},
	}, nil
}
