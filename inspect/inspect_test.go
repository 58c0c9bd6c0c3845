package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	informerobjects "github.com/flyball-dev/flyball/informer/objects"
	"github.com/flyball-dev/flyball/inspect"
	"github.com/flyball-dev/flyball/internal/trace"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/reconcile"
)

// done writes that a ConfigMap is done, once.
func done(c client.Client) reconcile.Func[reconcile.Request] {
	return func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		var cm corev1.ConfigMap
		if err := c.Get(ctx, req.NamespacedName, &cm); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if cm.Data["done"] == "yes" {
			return reconcile.Result{RequeueAfter: time.Hour}, nil
		}
		klog.FromContext(ctx).Info("Not done yet", "name", cm.Name)
		cm.Data = map[string]string{"done": "yes"}
		return reconcile.Result{}, c.Update(ctx, &cm)
	}
}

// start runs a manager with one controller of ConfigMaps until the test ends.
func start(t *testing.T, i *inspect.Inspector, r func(client.Client) reconcile.Func[reconcile.Request],
	objects ...runtime.Object,
) *manager.Manager {
	t.Helper()
	api := localapi.NewTest(t, objects...)
	mgr, err := manager.New(api.RESTConfig(), manager.Options{Inspect: i})
	if err != nil {
		t.Fatal(err)
	}
	if err := builder.ControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(r(mgr.GetClient())); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return mgr
}

func TestTimeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := inspect.New(inspect.Options{})
		mgr := start(t, i, done,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
		time.Sleep(5 * time.Second)
		object := inspect.Ref{Resource: "configmaps", Namespace: "default", Name: "a"}
		timeline := i.Timeline(object)
		timeline.Why = i.Why(t.Context(), mgr, object)
		var got strings.Builder
		if err := timeline.WriteText(&got); err != nil {
			t.Fatal(err)
		}
		want := `
configmaps default/a
00:00:00.000 #1     cache                    added, by the first list: version 11
00:00:00.000 #2     handler configmap        Add: key default/a
00:00:00.000 #3     reconcile configmap-1    done in 0s
                                              because of Add configmaps default/a, version 11
00:00:00.000 #4     log configmap-1          Not done yet name=a
00:00:00.000 #5     write configmap-1        update configmaps default/a: 200 OK, version 12
00:00:00.000 #6     event                    MODIFIED: version 12 (of write #5)
00:00:00.000 #7     cache                    updated: version 12
                                              data: none → {"done":"yes"}
00:00:00.000 #8     handler configmap        Update: key default/a
00:00:00.000 #9     reconcile configmap-2    done in 0s; again in 1h0m0s
                                              because of Update configmaps default/a, version 12
=> controller configmap will reconcile default/a in 59m55s (RequeueAfter, attempt 1)
`
		if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), got.String()); diff != "" {
			t.Errorf("timeline (-want +got):\n%s", diff)
		}
	})
}

// TestUnreadableEvent: an event whose object cannot be decoded is a step, although the cache cannot take it over.
func TestUnreadableEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := inspect.New(inspect.Options{})
		f := &feed{next: make(chan *corev1.Pod), odd: make(chan *informerobjects.DecodeError)}
		inf := informer.NewSharedInformer(f, informer.Options[*corev1.Pod]{Resource: "pods"})
		ctx, stop := context.WithCancel(i.Context(klog.NewContext(t.Context(), klog.NewKlogr().V(9))))
		ended := make(chan error)
		go func() { ended <- inf.Run(ctx) }()
		f.next <- &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: "11"}}
		synctest.Wait()
		f.odd <- &informerobjects.DecodeError{What: "ns/a", Key: "ns/a", Version: "12", Err: errors.New("an odd field")}
		synctest.Wait()
		var got []string
		for _, e := range i.Timeline(inspect.Ref{Resource: "pods", Namespace: "ns", Name: "a"}).Steps {
			got = append(got, fmt.Sprint(e.Stage, " ", e.Text, " ", e.Failed))
		}
		if diff := cmp.Diff([]string{
			"event MODIFIED: version 11 false", "cache added: version 11 false",
			"event MODIFIED: version 12, which the cache cannot take over: decode ns/a: an odd field true",
		}, got); diff != "" {
			t.Errorf("timeline (-want +got):\n%s", diff)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestWriteComesBack: a write refers to the event that brought it back, and not to that of a cache of metadata if there
// is another.
func TestWriteComesBack(t *testing.T) {
	for _, c := range []struct {
		events []string // the forms of the caches that get the event, in order
		want   int      // which of them is linked
	}{{[]string{""}, 0}, {[]string{"metadata"}, 0}, {[]string{"metadata", ""}, 1}, {[]string{"", "metadata"}, 0}} {
		i := inspect.New(inspect.Options{})
		pod := trace.Subject{Resource: "pods", Namespace: "ns", Name: "a"}
		w := trace.Write{Object: pod, Verb: "update", Status: "200 OK", Version: "12"}
		trace.BeginWrite(i.Context(t.Context()), &w)
		w.End()
		for _, form := range c.events {
			i.Recorder().Received(pod, "MODIFIED", "12", form, nil)
			i.Recorder().Changed("pods", form, "Update", false, nil,
				&metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: "12"}, time.Now())
		}
		var got []int
		for n, e := range i.Timeline(inspect.Ref{Resource: "pods", Namespace: "ns", Name: "a"}).Steps {
			if e.From != 0 {
				got = append(got, n)
			}
		}
		if want := []int{1 + 2*c.want}; !slices.Equal(got, want) { // the write, and two steps of each cache
			t.Errorf("%q: the steps %v refer to the write, want %v", c.events, got, want)
		}
	}
}
