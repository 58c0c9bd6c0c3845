package ephemeralcluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/imagestreamtag"
)

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
