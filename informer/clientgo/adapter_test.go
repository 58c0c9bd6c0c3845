package clientgo

import (
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	peer "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
)

// The suite in peers/informer runs against client-go and this package, and covers what both have in common. These tests
// cover the rest.

func pod(name, rv string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, ResourceVersion: rv}}
}

// over returns our stream on top of w.
func over(w watch.Interface, position string, listing bool) *stream {
	return &stream{lw: listerWatcher{example: &corev1.Pod{}}, peer: w, position: position, listing: listing}
}

// TestStream: the stream converts each event of client-go's watch to one of package listwatch.
func TestStream(t *testing.T) {
	w := watch.NewFakeWithChanSize(10, false)
	end := pod("", "7")
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	w.Add(pod("one", "5"))
	w.Add(pod("two", "3"))
	w.Action(watch.Bookmark, end)
	w.Modify(pod("one", "8"))
	w.Delete(pod("one", "9"))
	w.Error(&apierrors.NewResourceExpired("too old").ErrStatus)
	w.Add(&corev1.Service{})
	w.Stop()
	s := over(w, "", true)
	for _, want := range []listwatch.Event[held]{
		{Type: listwatch.Added, ResourceVersion: "5", Object: held{from: fromList}},
		{Type: listwatch.Added, ResourceVersion: "3", Object: held{from: fromList}},
		{Type: listwatch.Bookmark, ResourceVersion: "7", InitialEventsEnd: true},
		{Type: listwatch.Modified, ResourceVersion: "8", Object: held{from: fromWatch}},
		{Type: listwatch.Removed, ResourceVersion: "9", Object: held{from: fromWatch}},
	} {
		got, err := s.Next(t.Context())
		got.Object.Object = nil
		if err != nil || got != want {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
	if _, err := s.Next(t.Context()); !apierrors.IsResourceExpired(err) {
		t.Errorf("error event: %v", err)
	}
	if _, err := s.Next(t.Context()); !errors.As(err, new(*objects.DecodeError)) {
		t.Errorf("object of another type: %v", err)
	}
	if _, err := s.Next(t.Context()); err != io.EOF {
		t.Errorf("closed: %v", err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := over(watch.NewFake(), "", false).Next(done); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestStreamFromThePast: events older than the position are accepted, but do not move it back. When the watch ends, the
// stream reports it as expired, in case the events came from a server whose history went back.
func TestStreamFromThePast(t *testing.T) {
	w := watch.NewFakeWithChanSize(10, false)
	for _, rv := range []string{"9", "4", "", "strange", "12"} {
		w.Modify(pod("one", rv))
	}
	w.Stop()
	s := over(w, "7", false)
	for _, want := range []string{"9", "", "", "strange", "12"} {
		if ev, err := s.Next(t.Context()); err != nil || ev.ResourceVersion != want {
			t.Errorf("got %q, %v, want %q", ev.ResourceVersion, err, want)
		}
	}
	if _, err := s.Next(t.Context()); !apierrors.IsResourceExpired(err) {
		t.Errorf("the end: %v", err)
	}
}

// TestCheckedKinds: unstructured objects share a Go type, so the kind is checked.
func TestCheckedKinds(t *testing.T) {
	tree := func(kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	}
	lw := listerWatcher{example: tree("Pod")}
	if _, err := lw.checked(tree("Pod")); err != nil {
		t.Error(err)
	}
	if _, err := lw.checked(tree("Service")); err == nil {
		t.Error("a Service is no Pod")
	}
	if _, err := (listerWatcher{}).checked(&metav1.Status{}); err == nil {
		t.Error("a Status has no metadata")
	}
}

// TestErrorsOfNoServer: an error that comes from no server means that the client cannot stream lists.
func TestErrorsOfNoServer(t *testing.T) {
	for err, want := range map[error]bool{
		errors.New("strconv.Atoi"):                       true,
		apierrors.NewTooManyRequests("slow down", 1):     false,
		&url.Error{Op: "Get", Err: syscall.ECONNREFUSED}: false,
		context.Canceled:                                 false,
	} {
		if ofNoServer(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}

// TestPanicsAgain: a panic in a handler reaches the core, which does not stop it from ending the process.
func TestPanicsAgain(t *testing.T) {
	handlers := utilruntime.PanicHandlers
	defer func() { utilruntime.PanicHandlers = handlers }()
	utilruntime.PanicHandlers = nil
	boom := ResourceEventHandlerFuncs{
		AddFunc: func(any) { panic("add") }, UpdateFunc: func(any, any) { panic("update") },
		DeleteFunc: func(any) { panic("delete") },
	}
	for want, call := range map[string]func(){
		"add": func() { newDelivery(boom).add(held{pod("one", "1"), fromList}, true) },
		"update": func() {
			newDelivery(boom).update(held{pod("one", "1"), fromWatch}, held{pod("one", "2"), fromWatch})
		},
		"delete": func() { newDelivery(boom).delete(informer.Deleted[held]{Key: "a/one", Stale: true}) },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("%s: %v", want, got)
				}
			}()
			call()
		}()
	}
	if (&sharedInformer{}).set(func() {}) != nil {
		t.Error("not settable")
	}
}

func newDelivery(to ResourceEventHandler) *delivery { return &delivery{to: to, log: klog.Background()} }

// TestPauseAfterAPanic: if a panic does not end the process, the handler is called again a second later, as in
// client-go.
func TestPauseAfterAPanic(t *testing.T) {
	defer func(crash bool, handlers []func(context.Context, any)) {
		utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers
	}(utilruntime.ReallyCrash, utilruntime.PanicHandlers)
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = false, nil
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var calls []time.Duration
		d := newDelivery(ResourceEventHandlerFuncs{AddFunc: func(any) {
			if calls = append(calls, time.Since(start)); len(calls) == 2 {
				panic("the second")
			}
		}})
		for range 4 {
			d.add(held{pod("one", "1"), fromList}, true)
		}
		if want := []time.Duration{0, 0, time.Second, time.Second}; !slices.Equal(calls, want) {
			t.Errorf("called at %v, want %v", calls, want)
		}
	})
}

// TestNothingOfATransactionSucceeds: the lists in a TransactionError are empty, not nil, as in client-go.
func TestNothingOfATransactionSucceeds(t *testing.T) {
	s := NewStore(MetaNamespaceKeyFunc).(peer.TransactionStore)
	err := s.Transaction(peer.Transaction{Type: peer.TransactionTypeAdd, Object: "no object"})
	if err == nil || err.SuccessfulIndices == nil || len(err.Errors) != 1 {
		t.Errorf("%#v", err)
	}
}

// TestStatsAndHealth: informers have two methods that client-go's interface does not have: Stats, for package
// informer/metrics, and Health.
func TestStatsAndHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fixed atomic.Bool
		inf := NewSharedIndexInformerWithOptions(ToListWatcherWithWatchListSemantics(&ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				if !fixed.Load() {
					return nil, apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("no"))
				}
				return &corev1.PodList{Items: []corev1.Pod{*pod("one", "1")}}, nil
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				return watch.NewFake(), nil
			},
		}, noStreams{}), &corev1.Pod{}, SharedIndexInformerOptions{ObjectDescription: "pods"}).(*sharedInformer)
		if _, err := inf.AddEventHandler(ResourceEventHandlerFuncs{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		go inf.RunWithContext(ctx)
		synctest.Wait()
		if h := inf.Health(); h.Synced || h.Err == nil ||
			h.Err.Error() != "cannot list pods at the cluster scope: forbidden: no" {
			t.Errorf("%+v", h)
		}
		fixed.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		s := inf.Stats()
		if s.Objects != 1 || len(s.Handlers) != 1 || s.Handlers[0].Name != "cache.ResourceEventHandlerFuncs-1" ||
			s.Handlers[0].Delivered != 1 {
			t.Errorf("%+v", s)
		}
		cancel()
		synctest.Wait()
		if !inf.IsStopped() {
			t.Error("not stopped")
		}
	})
}

// noStreams is a client that reports that it cannot stream lists.
type noStreams struct{}

func (noStreams) IsWatchListSemanticsUnSupported() bool { return true }

// TestGeneratedFactoryAndLister: a generated factory runs our informer, and a generated lister reads our cache. The
// fake clientset never changes a resource version.
func TestGeneratedFactoryAndLister(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		client := fake.NewClientset(pod("one", "1"))
		factory := informers.NewSharedInformerFactory(client, 0)
		inf := factory.InformerFor(&corev1.Pod{},
			func(client kubernetes.Interface, resync time.Duration) SharedIndexInformer {
				pods := client.CoreV1().Pods("")
				lw := &ListWatch{
					ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
						return pods.List(ctx, o)
					},
					WatchFuncWithContext: pods.Watch,
				}
				return NewSharedIndexInformer(ToListWatcherWithWatchListSemantics(lw, client), &corev1.Pod{}, resync,
					Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
			})
		var updates int
		if _, err := inf.AddEventHandler(
			ResourceEventHandlerFuncs{UpdateFunc: func(any, any) { updates++ }},
		); err != nil {
			t.Fatal(err)
		}
		factory.StartWithContext(ctx)
		factory.WaitForCacheSync(ctx.Done())
		// With any informer, the fake clientset loses writes between the list and the watch.
		synctest.Wait()
		changed := pod("one", "1")
		changed.Spec.NodeName = "n"
		for range 3 {
			if _, err := client.CoreV1().Pods("a").Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		lister := corelisters.NewPodLister(inf.GetIndexer())
		if p, err := lister.Pods("a").Get("one"); err != nil || p.Spec.NodeName != "n" || updates != 3 {
			t.Errorf("after %d updates: %v %v", updates, p, err)
		}
		if _, err := lister.Pods("a").Get("two"); !apierrors.IsNotFound(err) {
			t.Errorf("lister of nothing: %v", err)
		}
		if all, err := lister.List(labels.Everything()); err != nil || len(all) != 1 {
			t.Errorf("%d pods, %v", len(all), err)
		}
		cancel()
		factory.Shutdown()
	})
}
