package patterns

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

// counted counts its runs, and when the certificate of a site was seen.
type counted struct {
	client.Client
	runs int
	seen time.Time
}

// certificate returns the certificate of a site; nil if there is none yet.
func (c *counted) certificate(ctx context.Context, r ctrl.Request) (*corev1.Secret, error) {
	c.runs++
	var secret corev1.Secret
	if err := c.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name + "-cert"}, &secret); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if c.seen.IsZero() {
		c.seen = time.Now()
	}
	return &secret, nil
}

// asking looks again every ten seconds, and does not know what it waits for.
type asking struct{ counted }

func (a *asking) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	_, err := a.certificate(ctx, r)
	return ctrl.Result{RequeueAfter: 10 * time.Second}, err
}

// told watches what it waits for. It asks to run again when the certificate has to be renewed: no event tells that.
type told struct{ counted }

func (w *told) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	secret, err := w.certificate(ctx, r)
	if err != nil || secret == nil {
		return ctrl.Result{}, err // The watch tells when there is one.
	}
	ends, err := time.Parse(time.RFC3339, secret.Annotations["ends"])
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: time.Until(ends.Add(-time.Hour))}, nil
}

func (w *told) setUp(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).For(&Site{}).
		Watches(&corev1.Secret{}, handler.EnqueueMapped(siteOf), builder.WatchOptions{}).
		Complete(w)
}

// siteOf returns the site that a Secret is the certificate of.
func siteOf(_ context.Context, secret client.Object) []ctrl.Request {
	name, isCert := strings.CutSuffix(secret.GetName(), "-cert")
	if !isCert {
		return nil
	}
	return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: secret.GetNamespace(), Name: name}}}
}
