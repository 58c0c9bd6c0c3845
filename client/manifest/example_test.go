package manifest_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing/fstest"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/localapi"
)

// A tool reads the files and directories that its user names, or standard input.
func ExampleReadFiles() {
	stdin := strings.NewReader(`
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: clerk, namespace: shop}}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: shop}
`)
	_, err := manifest.ReadFiles([]string{"-"}, stdin)
	fmt.Println(err)
	// Output: standard input, document 2: ConfigMap without metadata.name
}

// A program installs its definitions. In a real program the files would be embedded.
func ExampleInstall() {
	files := fstest.MapFS{
		"shop.yaml":  {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: prices, namespace: shop}}")},
		"space.yaml": {Data: []byte("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")},
	}
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	c, err := client.New(server.RESTConfig(), client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	objects, err := manifest.ReadFS(files, "*.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 { // The second time everything is there.
		fmt.Println(manifest.Install(context.Background(), c, objects))
	}
	// Output:
	// <nil>
	// <nil>
}

// A test checks a program against the manifest that deploys it.
func ExampleFind() {
	objects, err := manifest.ReadFS(os.DirFS("../../deploy"), "manager.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	var lease rbacv1.Role
	if err := manifest.Find(objects, "Role", &lease); err != nil {
		fmt.Println(err)
	}
	fmt.Println(lease.Name, lease.Rules[0].Resources)
	// Output: flyball-manager-lease [leases]
}
