package informer

import (
	"context"
	"errors"
	"os"
	"os/exec"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// TestCasePanic (18): a handler that panicked in the initial list never has synced, where panics do not end the
// process.
func TestCasePanic(t *testing.T) {
	crash := utilruntime.ReallyCrash
	utilruntime.ReallyCrash = false
	defer func() { utilruntime.ReallyCrash = crash }()
	unhurried(t)
	synctest.Test(t, func(t *testing.T) {
		src := newSource(false, "one", "two")
		inf := upstream.newInformer(src, &corev1.Pod{}, 0, nil)
		reg, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { panic("no") }})
		must(t, err)
		defer running(t, inf)()
		time.Sleep(time.Hour)
		if reg.HasSynced() {
			t.Error("synced")
		}
	})
}

// TestCaseSlowHandler (19, 20): a handler that is stuck has everything kept for it.
func TestCaseSlowHandler(t *testing.T) {
	unhurried(t)
	synctest.Test(t, func(t *testing.T) {
		src := newSource(false, "one")
		inf := upstream.newInformer(src, &corev1.Pod{}, 0, nil)
		gate := make(chan struct{})
		var updates int
		_, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { <-gate }, UpdateFunc: func(_, _ any) { updates++ },
		})
		must(t, err)
		defer running(t, inf)()
		for range 20_000 {
			synctest.Wait()
			src.put("one")
		}
		close(gate)
		synctest.Wait()
		if updates != 20_000 {
			t.Errorf("%d updates", updates)
		}
	})
}

// TestCaseMutation (25): the mutation detector ends the process without naming the handler that changed the object.
func TestCaseMutation(t *testing.T) {
	const variable = "KUBE_CACHE_MUTATION_DETECTOR"
	if os.Getenv(variable) == "true" {
		src := newSource(false, "one")
		inf := upstream.newInformer(src, &corev1.Pod{}, 0, nil)
		_, err := inf.AddEventHandler(
			cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { careless(obj.(*corev1.Pod)) }},
		)
		must(t, err)
		inf.RunWithContext(klog.NewContext(context.Background(), klog.Logger{}))
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestCaseMutation$")
	child.Env = append(os.Environ(), variable+"=true")
	out, err := child.CombinedOutput()
	var exit *exec.ExitError
	// A race detector speaks before that.
	_, trace, panicked := strings.Cut(string(out), "panic: cache *v1.Pod modified")
	if !errors.As(err, &exit) || !panicked || strings.Contains(trace, "careless") {
		t.Errorf("%v: %s", err, trace)
	}
}

func careless(p *corev1.Pod) { p.Spec.NodeName = "mine" }

// TestCaseRelistPeak (20): listing unchanged objects again doubles the memory for a moment.
func TestCaseRelistPeak(t *testing.T) {
	unhurried(t)
	synctest.Test(t, func(t *testing.T) {
		heap := func() uint64 {
			goruntime.GC()
			var m goruntime.MemStats
			goruntime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		src := &odd{source: newSource(false)}
		var peak uint64
		src.list = func(metav1.ListOptions) (runtime.Object, error) {
			list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
			for i := range 2000 {
				p := pod("a", strconv.Itoa(i), "1")
				p.Annotations = map[string]string{"weight": strings.Repeat("x", 8192)}
				list.Items = append(list.Items, *p)
			}
			peak = heap()
			return list, nil
		}
		empty := heap()
		inf := upstream.newInformer(src, &corev1.Pod{}, 0, nil)
		defer running(t, inf)()
		synctest.Wait()
		live := heap() - empty
		src.fault(apierrors.NewResourceExpired("too old"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if x := float64(peak-empty) / float64(live); x < 1.9 {
			t.Errorf("peak is %.2f of what lives", x)
		}
	})
}
