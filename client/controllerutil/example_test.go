package controllerutil_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/client/interceptor"
	"github.com/flyball-dev/flyball/localapi"
)

// What changed is sent, and nothing else.
func ExampleNewPatchHelper() {
	api, err := localapi.New(localapi.Options{})
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
	ctx, recorded := context.Background(), interceptor.Record(c)
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	if err := c.Create(ctx, settings); err != nil {
		fmt.Println(err)
	}
	helper, err := controllerutil.NewPatchHelper(recorded, settings)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(helper.Patch(ctx, settings), len(recorded.Calls()), "calls")
	settings.Data = map[string]string{"color": "blue"}
	fmt.Println(helper.Patch(ctx, settings), recorded.Calls())
	// Output:
	// <nil> 0 calls
	// <nil> [patch default/settings]
}
