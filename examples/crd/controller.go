package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

const (
	finalizer   = "examples.flyball.dev/name"
	domainField = "spec.domain"
)

// NameServer is outside the cluster, so garbage collection does not reach it: only this controller deletes its entries.
// Its methods are idempotent.
type NameServer interface {
	Set(ctx context.Context, domain, target string) error
	Remove(ctx context.Context, domain, target string) error
}

// +kubebuilder:rbac:groups=examples.flyball.dev,resources=websites,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=examples.flyball.dev,resources=websites/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=list;watch;create;update
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Reconciler reconciles Websites.
type Reconciler struct {
	client.Client
	Names    NameServer
	Recorder events.Recorder
}

// SetupWithManager builds the controller. When a Website changes, the other Websites of its domain are reconciled too,
// because they may be waiting for the domain.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr *ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &Website{}, domainField, domainOf); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&Website{}).
		Owns(&corev1.ConfigMap{}).
		Watches(&Website{}, handler.EnqueueMapped(r.rivals), builder.WatchOptions{}).
		Complete(r)
}

func domainOf(obj client.Object) []string { return []string{obj.(*Website).Spec.Domain} }

// rivals returns requests for the other Websites of a domain.
func (r *Reconciler) rivals(ctx context.Context, obj client.Object) []ctrl.Request {
	var requests []ctrl.Request
	for _, w := range r.sameDomain(ctx, obj.(*Website)) {
		if w.UID != obj.GetUID() {
			requests = append(requests, reconcile.RequestFor(&w))
		}
	}
	return requests
}

// sameDomain lists the Websites of a domain, oldest first. The oldest one has the domain.
func (r *Reconciler) sameDomain(ctx context.Context, w *Website) []Website {
	var list WebsiteList
	// Lagging: a read from the cache as it is, because an event handler must not block. The next event triggers another
	// reconcile.
	if err := r.List(ctx, &list, client.MatchingFields{domainField: w.Spec.Domain}, client.Lagging); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Websites of a domain cannot be listed", "domain", w.Spec.Domain)
	}
	slices.SortFunc(list.Items, func(a, b Website) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	return list.Items
}

// Reconcile implements ctrl.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (_ ctrl.Result, err error) {
	var website Website
	if err := r.Get(ctx, request.NamespacedName, &website); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	deleting, err := controllerutil.Finalize(ctx, r, &website, finalizer, func(ctx context.Context) error {
		// Without a URL in its status, too: the process may have been killed between Set and the write of the status.
		return r.Names.Remove(ctx, website.Spec.Domain, request.String())
	})
	if deleting || err != nil {
		return ctrl.Result{}, err
	}
	status, err := controllerutil.NewPatchHelper(r, &website)
	if err != nil {
		return ctrl.Result{}, err
	}
	state, reason, message, err := r.publish(ctx, &website)
	if conditions.SetState(&website.Status.Conditions, website.Generation, state, reason, message,
		conditions.OnStatus) {
		r.Recorder.Eventf(&website, eventType(state), reason, "%s", message)
	}
	return ctrl.Result{}, errors.Join(err, status.Patch(ctx, &website))
}

// publish creates what belongs to a Website, and returns its condition.
func (r *Reconciler) publish(ctx context.Context,
	w *Website,
) (state conditions.State, reason, message string, err error) {
	if first := r.sameDomain(ctx, w); len(first) > 0 && first[0].UID != w.UID {
		w.Status.URL = ""
		return conditions.IsStalled, "DomainTaken", w.Spec.Domain + " belongs to " +
			client.ObjectKeyFromObject(&first[0]).String(), nil
	}
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name + "-page"}}
	_, err = controllerutil.CreateOrUpdate(ctx, r, page, func() error {
		page.Data = map[string]string{"index.html": w.Spec.HTML}
		return controllerutil.SetControllerReference(w, page, r.Scheme())
	})
	if err == nil {
		err = r.exists(ctx, w)
	}
	if err == nil {
		err = r.Names.Set(ctx, w.Spec.Domain, client.ObjectKeyFromObject(w).String())
	}
	if err != nil {
		return conditions.IsReconciling, "Publishing", err.Error(), err
	}
	w.Status.URL = "http://" + w.Spec.Domain
	return conditions.IsReady, "Published", w.Status.URL + " shows the page", nil
}

// exists asks the server whether the Website still exists. After a restart the cache may show one that is gone. A write
// for it fails or is garbage, but nobody would remove its entry from the name server. The finalizer of one that exists
// lets it go only after Remove.
func (r *Reconciler) exists(ctx context.Context, w *Website) error {
	var live Website
	if err := r.Get(ctx, client.ObjectKeyFromObject(w), &live, client.Live); err != nil {
		return fmt.Errorf("read the website before its name is set: %w", err)
	}
	if live.UID != w.UID || !controllerutil.ContainsFinalizer(&live, finalizer) {
		return errors.New("the website was replaced")
	}
	return nil
}

func eventType(s conditions.State) string {
	if s == conditions.IsStalled {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}
