package envtest_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/flyball-dev/flyball/localapi/envtest"
)

// A suite's environment: in a suite, Start stands in BeforeSuite or TestMain, and Stop in AfterSuite or behind m.Run.
func ExampleEnvironment() {
	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{"testdata/crds"},
		ErrorIfCRDPathMissing: true,
	}
	config, err := environment.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer environment.Stop()

	// Any client will do: client-go's, controller-runtime's manager, kubectl with environment.KubeConfig.
	backups := dynamic.NewForConfigOrDie(config).Resource(
		schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "backups"},
	)
	backup := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Backup",
		"metadata": map[string]any{"name": "nightly"}, "spec": map[string]any{"schedule": "@daily"},
	}}
	created, err := backups.Namespace("default").Create(context.Background(), backup, metav1.CreateOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(created.GetName(), created.Object["spec"])
	// Output:
	// nightly map[keep:3 schedule:@daily]
}
