package interceptor_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/interceptor"
	"github.com/flyball-dev/flyball/localapi"
)

// A test sees what a reconciler does when a write fails.
func ExampleNew() {
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
	failing := interceptor.New(c,
		func(ctx context.Context, call interceptor.Call, next func(context.Context) error) error {
			if call.Verb == "create" {
				return errors.New("no " + call.String())
			}
			return next(ctx)
		})
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	fmt.Println(failing.Create(context.Background(), settings))
	fmt.Println(failing.List(context.Background(), &corev1.ConfigMapList{}))
	// Output:
	// no create default/settings
	// <nil>
}
