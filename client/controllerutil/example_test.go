package controllerutil_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
)

// What changed is sent, and nothing else.
func ExampleNewPatchHelper() {
	requests := &audit.Log{}
	api, err := localapi.New(localapi.Options{Audit: requests})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer api.Close()
	c, err := client.New(api.RESTConfig(), client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	if err := c.Create(ctx, settings); err != nil {
		fmt.Println(err)
	}
	helper, err := controllerutil.NewPatchHelper(c, settings)
	if err != nil {
		fmt.Println(err)
		return
	}
	requests.Reset()
	fmt.Println(helper.Patch(ctx, settings), len(requests.Writes()), "writes")
	settings.Data = map[string]string{"color": "blue"}
	fmt.Println(helper.Patch(ctx, settings), requests.Writes())
	// Output:
	// <nil> 0 writes
	// <nil> [patch configmaps default/settings 200]
}
