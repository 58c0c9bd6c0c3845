package controllerruntime_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// hooks is a webhook server that only records that it was started.
type hooks struct {
	webhook.Server
	started chan struct{}
}

func (h *hooks) Start(ctx context.Context) error {
	close(h.started)
	<-ctx.Done()
	return nil
}

func (*hooks) WebhookMux() *http.ServeMux { return nil }

// key is the key of a value in the base context.
type key struct{}

// TestServersOfAManager: health, metrics, profiles and webhooks are served even while the caches cannot sync, because
// the caches may wait for a conversion webhook of this very process. The test runs outside a bubble.
func TestServersOfAManager(t *testing.T) {
	for name, newManager := range managerMakers {
		t.Run(name, func(t *testing.T) {
			var mapped bool
			api := localapi.NewTestWith(t,
				localapi.Options{Gate: gate.Funcs{OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
					if r.Resource == "configmaps" {
						return gate.FailWith(
							apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("not yet")),
						)
					}
					return gate.Verdict{}
				}}})
			o := manager.Options{
				HealthProbeBindAddress: address(t), ReadinessEndpointName: "/ready", LivenessEndpointName: "/live",
				PprofBindAddress: address(t), Metrics: server.Options{BindAddress: address(t)},
				WebhookServer: &hooks{started: make(chan struct{})},
				BaseContext:   func() context.Context { return context.WithValue(context.Background(), key{}, "base") },
				MapperProvider: func(c *rest.Config, h *http.Client) (meta.RESTMapper, error) {
					mapped = true
					return apiutil.NewDynamicRESTMapper(c, h)
				},
				Logger: logr.Discard(), NewClient: client.New,
				Cache: cache.Options{DefaultWatchErrorHandler: quiet},
			}
			m, err := newManager(api.RESTConfig(), o)
			if err != nil {
				t.Fatal(err)
			}
			err = ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).WithOptions(
				controller.Options{SkipNameValidation: new(true)},
			).
				Complete(
					reconcile.Func(
						func(context.Context, reconcile.Request) (reconcile.Result, error) {
							return reconcile.Result{},
								nil
						},
					),
				)
			based := make(chan any, 1)
			runs := manager.RunnableFunc(func(ctx context.Context) error {
				based <- ctx.Value(key{})
				return nil
			})
			bad := func(*http.Request) error { return errors.New("not well") }
			if err := errors.Join(err, m.Add(runs), m.AddHealthzCheck("ping", healthy), m.AddReadyzCheck("mine", bad),
				m.AddMetricsServerExtraHandler("/extra", http.NotFoundHandler())); err != nil {
				t.Fatal(err)
			}
			if m.GetWebhookServer() != o.WebhookServer {
				t.Error("another server of webhooks")
			}
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			defer wg.Wait()
			defer stop()
			wg.Go(func() { _ = m.Start(ctx) })
			<-o.WebhookServer.(*hooks).started
			for path, want := range map[string]int{
				o.HealthProbeBindAddress + "/live": 200, o.HealthProbeBindAddress + "/live/ping": 200,
				o.HealthProbeBindAddress + "/live/none": 404,
				o.HealthProbeBindAddress + "/ready":     500, o.HealthProbeBindAddress + "/ready/mine": 500,
				o.Metrics.BindAddress + "/metrics": 200, o.Metrics.BindAddress + "/extra": 404, o.PprofBindAddress +
					"/debug/pprof/": 200,
			} {
				if got := status(t, "http://"+path); got != want {
					t.Errorf("%s: %d, want %d", path, got, want)
				}
			}
			if !mapped {
				t.Error("the mapper is another")
			}
			if name != "our manager" {
				return // In controller-runtime's, runnables wait for the caches.
			}
			if got := <-based; got != "base" {
				t.Errorf("a runnable's context has %v", got)
			}
		})
	}
}

func healthy(*http.Request) error { return nil }

// address returns an address that is not in use.
func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// status returns the status code of the answer, once somebody listens.
func status(t *testing.T, url string) int {
	t.Helper()
	for {
		r, err := http.Get(url)
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
			_ = r.Body.Close()
		}
		if err == nil {
			return r.StatusCode
		}
		if t.Context().Err() != nil {
			t.Fatal(fmt.Errorf("get %s: %w", url, err))
		}
		time.Sleep(10 * time.Millisecond)
	}
}
