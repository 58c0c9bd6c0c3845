package localapi_test

import (
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/kube-openapi/pkg/util/proto"

	"github.com/flyball-dev/flyball/localapi"
)

// TestOpenAPIv2 reads the older document as older clients of kubectl do, and looks into some types.
func TestOpenAPIv2(t *testing.T) {
	document, err := kubernetes.NewForConfigOrDie(localapi.NewTest(t).RESTConfig()).Discovery().OpenAPISchema()
	if err != nil {
		t.Fatal(err)
	}
	models, err := proto.NewOpenAPIData(document)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"io.k8s.api.apps.v1.DeploymentSpec": "replicas", "io.k8s.api.networking.v1.Ingress": "spec",
		"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition": "spec",
	} {
		kind, ok := models.LookupModel(name).(*proto.Kind)
		if !ok || kind.Fields[want] == nil {
			t.Errorf("%s: %v", name, models.LookupModel(name))
		}
	}
	validated := false
	for _, path := range document.GetPaths().GetPath() {
		if op := path.GetValue().GetPatch(); op != nil {
			for _, p := range op.GetParameters() {
				if p.GetParameter().GetNonBodyParameter().GetQueryParameterSubSchema().GetName() == "fieldValidation" {
					validated = true
				}
			}
		}
	}
	if !validated {
		t.Error("no patch says that it takes fieldValidation: kubectl would validate by itself")
	}
}
