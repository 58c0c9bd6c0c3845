package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/examples/operators/projects/api/infrastructure"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/storage"
	"github.com/flyball-dev/flyball/localapi/storage/memory"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// host stands in for an infrastructure provider. It runs an API server in this process for every ProjectControlPlane,
// sets its status when the server answers, and closes the server when the ProjectControlPlane is gone. The servers
// share one store but do not see each other's objects: each is a tenant of the store.
//
// Clients reach a server under the path that the API server of the Projects routes to it: in this process through
// Wrap, over a network through Handler (routes_test.go).
//
// Concurrency: all methods may be called from any goroutine.
type host struct {
	// objects has the objects of all control planes. Each is a tenant, whose name is its UID.
	objects storage.Storage

	mu     sync.Mutex
	planes map[string]*plane
	// silent holds the names of the control planes that do not answer.
	silent map[string]bool
}

// plane is the API server of the ProjectControlPlane with that UID.
type plane struct {
	uid    types.UID
	server *localapi.Server
}

// newHost returns a host without control planes.
func newHost() *host {
	return &host{objects: memory.New(), planes: map[string]*plane{}, silent: map[string]bool{}}
}

// Run serves the ProjectControlPlanes of a cluster until ctx is done. The servers continue after that, until Close.
func (h *host) Run(ctx context.Context, config *rest.Config) error {
	scheme := runtime.NewScheme()
	if err := infrastructure.AddToScheme(scheme); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	r := &reconciler{Client: mgr.GetClient(), host: h}
	if err := ctrl.NewControllerManagedBy(mgr).For(&infrastructure.ProjectControlPlane{}).Complete(r); err != nil {
		return err
	}
	return mgr.Run(ctx)
}

// Server returns the API server of a name, or nil if there is none.
func (h *host) Server(name string) *localapi.Server {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.planes[name]; p != nil {
		return p.server
	}
	return nil
}

// Silence makes a control plane stop answering, or answer again.
func (h *host) Silence(name string, silent bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silent[name] = silent
}

// Close closes all servers.
func (h *host) Close() error {
	h.mu.Lock()
	planes := h.planes
	h.planes = map[string]*plane{}
	h.mu.Unlock()
	var errs []error
	for _, p := range planes {
		errs = append(errs, p.server.Close())
	}
	return errors.Join(append(errs, h.objects.Close())...)
}

// keep makes the server of a name the one with that UID; "" means no server.
func (h *host) keep(ctx context.Context, name string, uid types.UID) error {
	h.mu.Lock()
	old := h.planes[name]
	if old != nil && old.uid == uid || old == nil && uid == "" {
		h.mu.Unlock()
		return nil
	}
	delete(h.planes, name)
	h.mu.Unlock()
	if old != nil {
		if err := errors.Join(old.server.Close(), h.clear(ctx, old.uid)); err != nil {
			return fmt.Errorf("close the control plane %s: %w", name, err)
		}
	}
	if uid == "" {
		return nil
	}
	server, err := localapi.New(localapi.Options{Storage: h.objects, Tenant: string(uid), Audit: &audit.Log{}})
	if err != nil {
		return fmt.Errorf("start the control plane %s: %w", name, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.planes[name] = &plane{uid, server}
	return nil
}

// clear deletes what is left of a closed control plane.
func (h *host) clear(ctx context.Context, uid types.UID) error {
	left, err := h.objects.List(ctx, storage.TenantPrefix(string(uid)), storage.ListOptions{})
	if err != nil {
		return err
	}
	for _, r := range left.Records {
		if _, err := h.objects.Delete(ctx, r.Key, r.Revision); err != nil {
			return err
		}
	}
	return nil
}

type reconciler struct {
	client.Client
	*host
}

// Reconcile implements ctrl.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	p := &infrastructure.ProjectControlPlane{}
	if err := r.Get(ctx, request.NamespacedName, p); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, r.keep(ctx, request.Name, "")
	}
	if err := r.keep(ctx, p.Name, p.UID); err != nil {
		return ctrl.Result{}, err
	}
	ready := metav1.Condition{
		Type: infrastructure.ControlPlaneReady, Status: metav1.ConditionTrue, Reason: "Serving",
		Message: "The API server answers.",
	}
	before := p.DeepCopyObject().(*infrastructure.ProjectControlPlane)
	if !conditions.Set(&p.Status.Conditions, p.Generation, ready) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Status().Patch(ctx, p, client.MergeFrom(before))
}
