package chapter12

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
)

// A cluster is one of many.
type cluster struct {
	name string
	client.Reader
}

// visit is the first idea for many clusters: a loop over them. Each has half a minute to answer.
func visit(ctx context.Context, clusters []cluster, reconcile func(cluster, object string)) {
	for _, c := range clusters {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		var maps corev1.ConfigMapList
		if err := c.List(ctx, &maps, client.InNamespace("default")); err == nil {
			for _, object := range maps.Items {
				reconcile(c.name, object.Name)
			}
		}
		cancel()
	}
}
