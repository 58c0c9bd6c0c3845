package ephemeralcluster

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/examples/operators/ci/api"
)

var update = flag.Bool("update", false, "write the jobs into testdata, instead of comparing them")

func raw(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }

// The jobs of some clusters, with the configurations in them, are those in testdata.
func TestJobs(t *testing.T) {
	small := api.CIOperatorSpec{
		Releases: map[string]runtime.RawExtension{"latest": raw(`{"release":{"channel":"stable","version":"4.21"}}`)},
		Test:     api.TestSpec{Workflow: "ipi-aws", ClusterProfile: "aws"},
	}
	claim, root := raw(`{"version":"4.21","cloud":"aws"}`),
		raw(`{"image_stream_tag":{"namespace":"ocp","name":"builder","tag":"golang"}}`)
	for name, ec := range map[string]*api.EphemeralCluster{
		"small": {Spec: api.EphemeralClusterSpec{CIOperator: small}},
		"all": {
			ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{
					api.PipelineRunNameAnnotation: "run-7",
					api.TaskRunNameAnnotation:     "provision",
				},
			},
			Spec: api.EphemeralClusterSpec{CIOperator: api.CIOperatorSpec{
				BuildRoot: &root,
				BaseImages: map[string]runtime.RawExtension{
					"base": raw(`{"namespace":"ocp","name":"4.21","tag":"base"}`),
				},
				ExternalImages: map[string]runtime.RawExtension{"tool": raw(`{"registry":"quay.io"}`)},
				Resources:      map[string]runtime.RawExtension{"*": raw(`{"requests":{"cpu":"1"}}`)},
				Test: api.TestSpec{
					Workflow: "claimed", Env: map[string]string{"A": "b"},
					ClusterClaim: &claim,
				},
			}},
		},
	} {
		ec.Name, ec.UID = name, "0-1-2"
		o := Options{}.withDefaults()
		job, err := o.jobFor(ec)
		if err != nil {
			t.Fatal(err)
		}
		got, err := yaml.Marshal(job)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name+".yaml")
		if *update {
			if err := os.WriteFile(file, got, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s: the job is\n%s\nwant\n%s", name, got, want)
		}
	}
	o := Options{CLIImage: "nonsense"}.withDefaults()
	if _, err := o.jobFor(&api.EphemeralCluster{Spec: api.EphemeralClusterSpec{CIOperator: small}}); err == nil {
		t.Error("an image that is none is accepted")
	}
}
