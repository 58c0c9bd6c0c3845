package patterns

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/inspect"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

const seeing = "b-seeing"

// settings is the object whose way the appendix shows.
var settings = inspect.Ref{Resource: "configmaps", Namespace: "default", Name: "settings"}

// inspected runs a manager with an inspector for a minute, in which settings is created, and changed after 30 s. It
// returns the timeline of settings, with what Why says.
func inspected(t *testing.T, o manager.Options, build func(b *builder.Builder),
	do func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error,
) (timeline inspect.Timeline) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		api := localapi.NewTest(t)
		inspector := inspect.New(inspect.Options{})
		o.Inspect = inspector
		m, err := manager.New(api.RESTConfig(), o)
		if err != nil {
			t.Fatal(err)
		}
		c := m.GetClient()
		r := ctrl.ReconcilerFunc(func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
			var cm corev1.ConfigMap
			if err := c.Get(ctx, r.NamespacedName, &cm); err != nil || r.Name != settings.Name {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			return ctrl.Result{}, do(ctx, c, &cm)
		})
		b := ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Named("greeter")
		build(b)
		if err := b.Complete(r); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		synctest.Wait()
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: settings.Name}}
		person, err := client.New(api.RESTConfig(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := person.Create(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if err := person.Get(t.Context(), client.ObjectKeyFromObject(cm), cm); err != nil {
			t.Fatal(err)
		}
		cm.Labels = map[string]string{"language": "de"}
		if err := person.Update(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		timeline = inspector.Timeline(settings)
		timeline.Why = inspector.Why(t.Context(), m, settings)
		stop()
		// Some of the reconciles hang, and are cut short.
		if err := <-done; err != nil && !errors.As(err, new(*manager.UndoneError)) {
			t.Error(err)
		}
	})
	return timeline
}

// greet writes a greeting in the language of a ConfigMap.
func greet(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error {
	greeting := "hello"
	if cm.Labels["language"] == "de" {
		greeting = "guten Tag"
	}
	if cm.Data["greeting"] == greeting {
		return nil
	}
	klog.FromContext(ctx).Info("Greeting changes", "greeting", greeting)
	cm.Data = map[string]string{"greeting": greeting}
	return c.Update(ctx, cm)
}

func asIs(*builder.Builder) {}

// TestSeeingTimeline shows the way of an object.
func TestSeeingTimeline(t *testing.T) {
	timeline := inspected(t, manager.Options{}, asIs, greet)
	var text strings.Builder
	if err := timeline.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), " write greeter-"); n != 2 {
		t.Errorf("%d writes", n)
	}
	book.Trace(t, seeing, text.String())
}

// TestSeeingWhy asks why nothing happens, in five programs that are wrong.
func TestSeeingWhy(t *testing.T) {
	var text strings.Builder
	for _, p := range []struct {
		about   string
		options manager.Options
		build   func(*builder.Builder)
		do      func(context.Context, client.Client, *corev1.ConfigMap) error
		want    string
	}{
		{
			about: "a predicate that lets no update through",
			build: func(b *builder.Builder) {
				b.WithEventFilter(builder.PredicateFunc(func(e predicate.Event[client.Object]) bool {
					return e.Type != predicate.Update
				}))
			},
			do: greet, want: "a predicate dropped",
		},
		{
			about: "a cache of other objects",
			options: manager.Options{Caches: []client.CacheOf{{
				Object: &corev1.ConfigMap{}, Informer: informer.InformerOptions{LabelSelector: "app=greeter"},
			}}},
			do: greet, want: "holds objects with the labels",
		},
		{
			about: "a reconcile that fails",
			do: func(context.Context, client.Client, *corev1.ConfigMap) error {
				return errors.New("the dictionary does not answer")
			},
			want: "the dictionary does not answer",
		},
		{
			about: "a reconcile that gave up",
			do: func(_ context.Context, _ client.Client, cm *corev1.ConfigMap) error {
				return reconcile.Terminal(errors.New("the dictionary has no such language"))
			},
			want: "no such language",
		},
		{
			about: "a reconcile that hangs",
			do: func(ctx context.Context, _ client.Client, _ *corev1.ConfigMap) error {
				<-ctx.Done()
				return nil
			},
			want: "has been reconciling",
		},
	} {
		if p.build == nil {
			p.build = asIs
		}
		p.options.GracefulTimeout = time.Second
		why := strings.Join(inspected(t, p.options, p.build, p.do).Why, "\n=> ")
		if !strings.Contains(why, p.want) {
			t.Errorf("%s: %s", p.about, why)
		}
		text.WriteString(p.about + "\n=> " + why + "\n\n")
	}
	book.Trace(t, seeing, text.String())
}
