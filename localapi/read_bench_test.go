package localapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
)

// readers are the ways to read that the benchmarks compare.
var readers = []struct {
	name string
	// of returns a reader of n objects of a kind.
	of func(b *testing.B, kind string, n int) reader
}{
	{"fake", func(b *testing.B, kind string, n int) reader {
		return typedReader(fake.NewClientset(stored(b, kind, n)...), kind)
	}},
	{"localapi", func(b *testing.B, kind string, n int) reader {
		return typedReader(clientset(b, serverWith(b, kind, n)), kind)
	}},
	{"localapi JSON", func(b *testing.B, kind string, n int) reader {
		return typedReader(clientset(b, inJSON(serverWith(b, kind, n))), kind)
	}},
	{"client-go alone", func(b *testing.B, kind string, n int) reader {
		return typedReader(clientset(b, withoutServer(serverWith(b, kind, n))), kind)
	}},
	{"client-go alone JSON", func(b *testing.B, kind string, n int) reader {
		return typedReader(clientset(b, withoutServer(inJSON(serverWith(b, kind, n)))), kind)
	}},
	{"server alone", func(b *testing.B, kind string, n int) reader {
		return rawReader(b, serverWith(b, kind, n), kind)
	}},
	{"client", func(b *testing.B, kind string, n int) reader {
		return clientReader(b, serverWith(b, kind, n), kind)
	}},
	{"client JSON", func(b *testing.B, kind string, n int) reader {
		return clientReader(b, inJSON(serverWith(b, kind, n)), kind)
	}},
}

func inJSON(config *rest.Config) *rest.Config {
	config.ContentType = apiruntime.ContentTypeJSON
	return config
}

func withoutServer(config *rest.Config) *rest.Config {
	config.Transport = &canned{next: config.Transport, answers: map[string]fixedAnswer{}}
	return config
}

// reader gets the object "o0" in the namespace "default", and lists all objects there.
type reader struct {
	get  func(context.Context) error
	list func(context.Context) (apiruntime.Object, error)
}

func typedReader(c kubernetes.Interface, kind string) reader {
	if kind == "Pod" {
		pods := c.CoreV1().Pods("default")
		return reader{
			func(ctx context.Context) error { _, err := pods.Get(ctx, "o0", metav1.GetOptions{}); return err },
			func(ctx context.Context) (apiruntime.Object, error) { return pods.List(ctx, metav1.ListOptions{}) },
		}
	}
	maps := c.CoreV1().ConfigMaps("default")
	return reader{
		func(ctx context.Context) error { _, err := maps.Get(ctx, "o0", metav1.GetOptions{}); return err },
		func(ctx context.Context) (apiruntime.Object, error) { return maps.List(ctx, metav1.ListOptions{}) },
	}
}

// rawReader sends the requests of a clientset, and reads the answers without decoding them.
func rawReader(b *testing.B, config *rest.Config, kind string) reader {
	b.Helper()
	path := config.Host + "/api/v1/namespaces/default/" + strings.ToLower(kind) + "s"
	send := func(ctx context.Context, path string) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		r.Header = http.Header{
			"Accept":     {apiruntime.ContentTypeProtobuf + "," + apiruntime.ContentTypeJSON},
			"User-Agent": {rest.DefaultKubernetesUserAgent()},
		}
		response, err := config.Transport.RoundTrip(r)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, response.Body)
		return errors.Join(err, response.Body.Close())
	}
	return reader{
		func(ctx context.Context) error { return send(ctx, path+"/o0") },
		func(ctx context.Context) (apiruntime.Object, error) { return nil, send(ctx, path) },
	}
}

// clientReader reads through package client, always from the server.
func clientReader(b *testing.B, config *rest.Config, kind string) reader {
	b.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		b.Fatal(err)
	}
	key := client.ObjectKey{Namespace: "default", Name: "o0"}
	if kind == "Pod" {
		return reader{
			func(ctx context.Context) error { return c.Get(ctx, key, &corev1.Pod{}) },
			func(ctx context.Context) (apiruntime.Object, error) {
				list := &corev1.PodList{}
				return list, c.List(ctx, list, client.InNamespace("default"))
			},
		}
	}
	return reader{
		func(ctx context.Context) error { return c.Get(ctx, key, &corev1.ConfigMap{}) },
		func(ctx context.Context) (apiruntime.Object, error) {
			list := &corev1.ConfigMapList{}
			return list, c.List(ctx, list, client.InNamespace("default"))
		},
	}
}

// stored returns n objects as a server returns them, with managed fields.
func stored(b *testing.B, kind string, n int) []apiruntime.Object {
	b.Helper()
	_, config := start(b, localapi.Options{})
	c := clientset(b, config).CoreV1()
	var first apiruntime.Object
	var err error
	if kind == "Pod" {
		first, err = c.Pods("default").Create(b.Context(), newPod("o0", ""), metav1.CreateOptions{})
	} else {
		first, err = c.ConfigMaps("default").Create(b.Context(), configMap("o0", "k", "v"), metav1.CreateOptions{})
	}
	if err != nil {
		b.Fatal(err)
	}
	var objects []apiruntime.Object
	for i := range n {
		obj := first.DeepCopyObject()
		obj.(metav1.Object).SetName(fmt.Sprint("o", i))
		objects = append(objects, obj)
	}
	return objects
}

// serverWith returns the configuration of a server with n objects.
func serverWith(b *testing.B, kind string, n int) *rest.Config {
	b.Helper()
	server, config := start(b, localapi.Options{})
	if err := server.Seed(b.Context(), stored(b, kind, n)...); err != nil {
		b.Fatal(err)
	}
	return config
}

// canned asks a server once for each path. After that it answers at once, with the same bytes.
type canned struct {
	next    http.RoundTripper
	answers map[string]fixedAnswer
}

// RoundTrip implements http.RoundTripper.
func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	a, ok := c.answers[r.URL.Path]
	if !ok {
		response, err := c.next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		a.contentType = response.Header.Get("Content-Type")
		if a.body, err = io.ReadAll(response.Body); err != nil {
			return nil, err
		}
		c.answers[r.URL.Path] = a
	}
	return a.RoundTrip(r)
}

// BenchmarkRead gets an object and lists 2,000 of them.
func BenchmarkRead(b *testing.B) {
	for _, kind := range []string{"ConfigMap", "Pod"} {
		for _, r := range readers {
			b.Run("get/"+kind+"/"+r.name, func(b *testing.B) {
				read := r.of(b, kind, 1)
				b.ReportAllocs()
				for b.Loop() {
					if err := read.get(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		for _, r := range readers {
			b.Run("list/"+kind+"/"+r.name, func(b *testing.B) {
				read := r.of(b, kind, 2000)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := read.list(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkListHeap lists 100,000 objects once. It reports how large the live heap is before that, how far it grows
// meanwhile beyond the result of the list, and the size of that result. Client and server share the heap.
func BenchmarkListHeap(b *testing.B) {
	const mega = 1 << 20
	for _, kind := range []string{"ConfigMap", "Pod"} {
		for _, r := range readers {
			if strings.Contains(r.name, "alone") {
				continue // it has more, or less, in the heap
			}
			b.Run(kind+"/"+r.name, func(b *testing.B) {
				read := r.of(b, kind, 100_000)
				before := liveHeap()
				var peak, result float64
				for range b.N {
					var sampler sync.WaitGroup
					ctx, stop := context.WithCancel(b.Context())
					sampler.Go(func() {
						for ctx.Err() == nil {
							peak = max(peak, liveHeap())
						}
					})
					list, err := read.list(b.Context())
					stop()
					sampler.Wait()
					if err != nil {
						b.Fatal(err)
					}
					result = liveHeap() - before
					runtime.KeepAlive(list)
				}
				b.ReportMetric(before/mega, "MB-before")
				b.ReportMetric(max(0, peak-before-result)/mega, "MB-growth")
				b.ReportMetric(result/mega, "MB-result")
			})
		}
	}
}

// liveHeap collects garbage and returns the number of bytes that are left.
func liveHeap() float64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return float64(sample[0].Value.Uint64())
}
