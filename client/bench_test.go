package client_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// BenchmarkGuarantee measures reads and writes with the guarantee on and off. The cache has 1,000 objects, 10 for each
// owner. Either it shows all own writes, or the watch is stuck and 100 own writes are outstanding.
func BenchmarkGuarantee(b *testing.B) {
	for _, outstanding := range []int{0, 100} {
		for name, how := range guarantee {
			b.Run(fmt.Sprintf("outstanding=%d/%s", outstanding, name),
				func(b *testing.B) { benchmarkReads(b, outstanding, how) })
		}
	}
	for name, how := range guarantee {
		b.Run("write/"+name, func(b *testing.B) {
			c := benchmarkClient(b, 0)
			m := configMap("0")
			defer processor(b)()
			for b.Loop() {
				m.Labels = map[string]string{"n": fmt.Sprint(b.N)}
				m.ResourceVersion = ""
				if err := c.Update(b.Context(), m); err != nil {
					b.Fatal(err)
				}
				if err := c.Get(b.Context(), keyOf(m), m, how); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// guarantee has the options of reads with the guarantee and without.
var guarantee = map[string]client.ReadOptions{"on": {}, "off": client.Lagging}

// processor returns a function that reports the processor time of this process for each operation. It is a better
// measure than wall time on a shared machine.
func processor(b *testing.B) func() {
	used := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	start := used()
	return func() { b.ReportMetric(float64(used()-start)/float64(b.N), "cpu-ns/op") }
}

func benchmarkReads(b *testing.B, outstanding int, how client.ReadOptions) {
	c := benchmarkClient(b, outstanding)
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		defer processor(b)()
		var m corev1.ConfigMap
		for b.Loop() {
			if err := c.Get(b.Context(), keyOf(configMap("50")), &m, how); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("list", func(b *testing.B) {
		b.ReportAllocs()
		defer processor(b)()
		for b.Loop() {
			var list corev1.ConfigMapList
			if err := c.List(b.Context(), &list, client.InNamespace("default"),
				client.MatchingFields{"owner": "5"}, how); err != nil || len(list.Items) != 10 {
				b.Fatal(err, len(list.Items))
			}
		}
	})
}

func benchmarkClient(b *testing.B, outstanding int) *client.Cluster {
	b.Helper()
	// Closed at the end. If writes are to be outstanding, watch frames wait for it.
	stuck := make(chan struct{})
	g := gate.Funcs{OnFrame: func(ctx context.Context, _ *gate.Request, _ gate.Frame) gate.Verdict {
		if outstanding > 0 {
			select {
			case <-stuck:
			case <-ctx.Done():
			}
		}
		return gate.Verdict{}
	}}
	api, err := localapi.New(localapi.Options{Gate: g})
	if err != nil {
		b.Fatal(err)
	}
	var objects []runtime.Object
	for i := range 1000 {
		objects = append(objects, configMap(fmt.Sprint(i), "owner", fmt.Sprint(i/10)))
	}
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	if err := api.Seed(ctx, objects...); err != nil {
		b.Fatal(err)
	}
	f, err := informer.NewFactory(api.RESTConfig(), informer.FactoryOptions{})
	if err != nil {
		b.Fatal(err)
	}
	c, err := client.New(api.RESTConfig(), client.Options{Informers: f, StaleAfter: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	b.Cleanup(func() { close(stuck); stop(); <-done; _ = api.Close() })
	byOwner := func(obj client.Object) []string { return []string{obj.GetLabels()["owner"]} }
	if err := c.IndexField(ctx, &corev1.ConfigMap{}, "owner", byOwner); err != nil {
		b.Fatal(err)
	}
	if err := c.List(ctx, &corev1.ConfigMapList{}); err != nil {
		b.Fatal(err)
	}
	for i := range outstanding {
		if err := c.Update(ctx, configMap(fmt.Sprint(i), "owner", fmt.Sprint(i/10), "written", "yes")); err != nil {
			b.Fatal(err)
		}
	}
	return c
}
