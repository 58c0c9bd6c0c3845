package localapi_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/localapi"
)

// meter measures a benchmark from its call on. report gives operations per second, and the processor time of one: on
// a machine that has other things to do only the second means something.
func meter(b *testing.B, what string) (report func()) {
	b.ReportAllocs()
	b.ResetTimer()
	begin := processorTime(b)
	return func() {
		b.StopTimer()
		used := processorTime(b) - begin
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), what+"/s")
		b.ReportMetric(float64(used)/float64(b.N), "cpu-ns/op")
	}
}

// processorTime is what this process has used so far, on all processors.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkCreate creates config maps and pods, with managed fields, through client-go.
func BenchmarkCreate(b *testing.B) {
	for _, encoding := range encodings {
		for _, kind := range []string{"configmap", "pod"} {
			b.Run(kind+"/"+encoding, func(b *testing.B) {
				_, config := start(b, localapi.Options{})
				config.ContentType = encoding
				client := clientset(b, config).CoreV1()
				var n atomic.Int64
				create := func() error {
					name := fmt.Sprintf("o%08d", n.Add(1))
					if kind == "pod" {
						_, err := client.Pods("default").Create(b.Context(), newPod(name, ""), metav1.CreateOptions{})
						return err
					}
					_, err := client.ConfigMaps("default").Create(b.Context(), configMap(name, "k", "v"),
						metav1.CreateOptions{})
					return err
				}
				if err := create(); err != nil { // builds the type converter
					b.Fatal(err)
				}
				report := meter(b, "creates")
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := create(); err != nil {
							b.Error(err)
							return
						}
					}
				})
				report()
			})
		}
	}
}

// BenchmarkGet gets one pod through client-go.
func BenchmarkGet(b *testing.B) {
	for _, encoding := range encodings {
		b.Run(encoding, func(b *testing.B) {
			_, config := start(b, localapi.Options{})
			config.ContentType = encoding
			pods := clientset(b, config).CoreV1().Pods("default")
			if _, err := pods.Create(b.Context(), newPod("p", ""), metav1.CreateOptions{}); err != nil {
				b.Fatal(err)
			}
			report := meter(b, "gets")
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := pods.Get(b.Context(), "p", metav1.GetOptions{}); err != nil {
						b.Error(err)
						return
					}
				}
			})
			report()
		})
	}
}

// fixedAnswer answers every request with the same bytes.
type fixedAnswer struct {
	contentType string
	body        []byte
}

// RoundTrip implements http.RoundTripper.
func (a fixedAnswer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {a.contentType}}, Request: r,
		ContentLength: int64(len(a.body)), Body: io.NopCloser(bytes.NewReader(a.body)),
	}, nil
}

// BenchmarkGetFloor is [BenchmarkGet] with no server: what client-go needs for itself.
func BenchmarkGetFloor(b *testing.B) {
	for _, encoding := range encodings {
		b.Run(encoding, func(b *testing.B) {
			_, config := start(b, localapi.Options{})
			config.ContentType = encoding
			client := clientset(b, config).CoreV1()
			if _, err := client.Pods("default").Create(b.Context(), newPod("p", ""),
				metav1.CreateOptions{}); err != nil {
				b.Fatal(err)
			}
			raw, err := client.RESTClient().Get().Namespace("default").Resource("pods").Name("p").DoRaw(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			config.Transport = fixedAnswer{encoding, raw}
			pods := clientset(b, config).CoreV1().Pods("default")
			report := meter(b, "gets")
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := pods.Get(b.Context(), "p", metav1.GetOptions{}); err != nil {
						b.Error(err)
						return
					}
				}
			})
			report()
		})
	}
}

// BenchmarkStart is the time from nothing to the first answer.
func BenchmarkStart(b *testing.B) {
	defer meter(b, "starts")()
	for range b.N {
		server, err := localapi.New(localapi.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := clientset(b, server.RESTConfig()).CoreV1().Namespaces().Get(b.Context(), "default",
			metav1.GetOptions{}); err != nil {
			b.Fatal(err)
		}
		if err := server.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStartToCreate is the time from nothing to the first object with managed fields. The first of a process
// (-benchtime 1x) also reads the schemas of the built-in types.
func BenchmarkStartToCreate(b *testing.B) {
	defer meter(b, "starts")()
	for range b.N {
		server, err := localapi.New(localapi.Options{})
		if err != nil {
			b.Fatal(err)
		}
		cm, err := clientset(b, server.RESTConfig()).CoreV1().ConfigMaps("default").Create(b.Context(),
			configMap("a", "k", "v"), metav1.CreateOptions{})
		if err != nil || len(cm.ManagedFields) == 0 {
			b.Fatal(cm, err)
		}
		if err := server.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWatchFanOut is the time of one write until each of 100 watchers has it.
func BenchmarkWatchFanOut(b *testing.B) {
	const watchers = 100
	_, config := start(b, localapi.Options{})
	config.ContentType = runtime.ContentTypeProtobuf
	maps := clientset(b, config).CoreV1().ConfigMaps("default")
	cm, err := maps.Create(b.Context(), configMap("a"), metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	received := make(chan struct{}, watchers)
	for range watchers {
		w, err := maps.Watch(b.Context(), metav1.ListOptions{ResourceVersion: cm.ResourceVersion})
		if err != nil {
			b.Fatal(err)
		}
		defer w.Stop()
		go func() {
			for range w.ResultChan() {
				received <- struct{}{}
			}
		}()
	}
	report := meter(b, "writes")
	for i := range b.N {
		cm.Data = map[string]string{"n": fmt.Sprint(i)}
		if cm, err = maps.Update(b.Context(), cm, metav1.UpdateOptions{}); err != nil {
			b.Fatal(err)
		}
		for range watchers {
			<-received
		}
	}
	report()
	b.ReportMetric(float64(b.N*watchers)/b.Elapsed().Seconds(), "events/s")
}
