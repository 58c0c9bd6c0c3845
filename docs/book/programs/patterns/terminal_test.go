package patterns

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile"
)

func check(site *Site) error {
	if !strings.Contains(site.Spec.Domain, ".") {
		return fmt.Errorf("%q is no domain", site.Spec.Domain)
	}
	return nil
}

// stubborn returns every error in the same way.
type stubborn struct {
	client.Client
	runs int
}

func (s *stubborn) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	s.runs++
	var site Site
	if err := s.Get(ctx, r.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{}, check(&site)
}

// resigned tells an error that a retry may cure from one that only the user can put right.
type resigned struct {
	client.Client
	runs int
}

func (s *resigned) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	s.runs++
	var site Site
	if err := s.Get(ctx, r.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	status, err := controllerutil.NewPatchHelper(s, &site)
	if err != nil {
		return ctrl.Result{}, err
	}
	state, reason, message := conditions.IsReady, "Published", ""
	if err = check(&site); err != nil {
		state, reason, message = conditions.IsStalled, "InvalidSpec", err.Error()
		err = reconcile.Terminal(err)
	}
	site.Status.ObservedGeneration = site.Generation
	conditions.SetState(&site.Status.Conditions, site.Generation, state, reason, message)
	return ctrl.Result{}, errors.Join(err, status.Patch(ctx, &site))
}
