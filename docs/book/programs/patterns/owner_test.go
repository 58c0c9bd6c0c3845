package patterns

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/reconcile"
)

// publishOwned is publish for a page that belongs to its site, and to nobody else.
func publishOwned(ctx context.Context, c client.Client, scheme *runtime.Scheme, site *Site) error {
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name + "-page"}}
	_, err := controllerutil.CreateOrUpdate(ctx, c, page, func() error {
		if page.UID != "" && !metav1.IsControlledBy(page, site) {
			return reconcile.Terminal(fmt.Errorf("the ConfigMap %s is there already, and is not ours", page.Name))
		}
		page.Data = map[string]string{"index.html": site.Spec.Text}
		return controllerutil.SetControllerReference(site, page, scheme)
	})
	return err
}
