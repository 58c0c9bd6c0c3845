package v1alpha1

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/cel"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/manager/webhook"

	samplev1alpha1 "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/api/v1alpha1"
	// flyball:conversion
	samplev1beta7 "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/api/v1beta7"
	// flyball:end
	// +kubebuilder:scaffold:imports
)

var testScheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(testScheme))
	utilruntime.Must(samplev1alpha1.AddToScheme(testScheme))
	// flyball:conversion
	utilruntime.Must(samplev1beta7.AddToScheme(testScheme))
	// flyball:end
	// +kubebuilder:scaffold:scheme
}

// manifests returns the definitions of config/crd/bases, with the patches of config/crd/patches, and the webhook
// configurations.
func manifests(t *testing.T) []runtime.Object {
	t.Helper()
	all, err := manifest.ReadFiles([]string{"../../../config/crd/bases"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"../../../config/crd/patches", "../../../config/webhook/manifests.yaml"} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		more, err := manifest.ReadFiles([]string{path}, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, more...)
	}
	var objects []runtime.Object
	known := map[string]int{}
	for _, o := range all {
		name := o.GetKind() + " " + o.GetName()
		i, patches := known[name]
		if !patches {
			known[name], objects = len(objects), append(objects, o.Unstructured)
			continue
		}
		if conversion, found, _ := unstructured.NestedMap(o.Object, "spec", "conversion"); found {
			definition := objects[i].(*unstructured.Unstructured)
			if err := unstructured.SetNestedMap(definition.Object, conversion, "spec", "conversion"); err != nil {
				t.Fatal(err)
			}
		}
	}
	return objects
}

// run runs webhooks with an API server of this process that calls them: it has what manifests
// returns.
func run(t *testing.T, setup func(mgr *ctrl.Manager) error, test func(ctx context.Context, c client.Client)) {
	t.Helper()
	objects := manifests(t)
	synctest.Test(t, func(t *testing.T) {
		server := localapi.NewTestWith(t, localapi.Options{Scheme: testScheme, CEL: cel.New()}, objects...)
		options := ctrl.Options{Scheme: testScheme, Webhook: webhook.Options{Port: -1}} // called directly, by no port
		mgr, err := ctrl.NewManager(server.RESTConfig(), options)
		if err != nil {
			t.Fatal(err)
		}
		if err := setup(mgr); err != nil {
			t.Fatal(err)
		}
		server.HandleWebhook("system/webhook-service", mgr.GetWebhookServer())
		c, err := client.New(server.RESTConfig(), client.Options{Scheme: testScheme})
		if err != nil {
			t.Fatal(err)
		}
		test(t.Context(), c)
	})
}
