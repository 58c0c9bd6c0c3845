package patterns

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
)

// publishOnce makes a page, and then notes that there is one.
func publishOnce(ctx context.Context, c client.Client, site *Site) error {
	if site.Annotations["page"] != "" {
		return nil
	}
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: site.Namespace, GenerateName: site.Name + "-", Labels: map[string]string{"site": site.Name},
	}}
	page.Data = map[string]string{"index.html": site.Spec.Text}
	if err := c.Create(ctx, page); err != nil {
		return err
	}
	site.Annotations = map[string]string{"page": page.Name}
	return c.Update(ctx, site)
}

// publish makes the page of a site as it should be, whatever is there.
func publish(ctx context.Context, c client.Client, site *Site) error {
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name + "-page"}}
	_, err := controllerutil.CreateOrUpdate(ctx, c, page, func() error {
		page.Labels = map[string]string{"site": site.Name}
		page.Data = map[string]string{"index.html": site.Spec.Text}
		return nil
	})
	return err
}
