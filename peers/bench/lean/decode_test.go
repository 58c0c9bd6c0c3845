package lean

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/listwatch"
)

// recorded answers every request with one body, from memory.
type recorded struct {
	header http.Header
	body   []byte
}

func (r recorded) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: r.header, Body: io.NopCloser(bytes.NewReader(r.body)), Request: req,
	}, nil
}

// BenchmarkDecode decodes a list of 10,000 pods that is in memory, and keeps the pods until all are decoded. An
// operation is the list; ns/pod is CPU time, the garbage collector's included.
func BenchmarkDecode(b *testing.B) {
	const n = 10_000
	pods := Resources["pods"]
	file, err := pods.Generate(b.TempDir(), n)
	if err != nil {
		b.Fatal(err)
	}
	replay, err := NewReplay(pods, file, n)
	if err != nil {
		b.Fatal(err)
	}
	answer := httptest.NewRecorder()
	replay.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil))
	client, err := kubernetes.NewForConfig(&rest.Config{
		Transport: recorded{answer.Header(), answer.Body.Bytes()}, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"},
	})
	if err != nil {
		b.Fatal(err)
	}
	ours := func(ctx context.Context, standard bool) (all []*corev1.Pod, err error) {
		lw := listwatch.NewRESTListerWatcher[*corev1.Pod](client.CoreV1().RESTClient(), listwatch.RESTOptions{
			Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod", StandardDecoding: standard,
		})
		_, err = lw.List(ctx, listwatch.ListOptions{}, func(p *corev1.Pod) error {
			all = append(all, p)
			return nil
		})
		return all, err
	}
	for _, system := range []struct {
		name string
		list func(context.Context) (any, int, error)
	}{
		{"client-go", func(ctx context.Context) (any, int, error) {
			list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
			return list, len(list.Items), err
		}},
		{"Flyball", func(ctx context.Context) (any, int, error) {
			all, err := ours(ctx, false)
			return all, len(all), err
		}},
		{"Flyball, standard", func(ctx context.Context) (any, int, error) {
			all, err := ours(ctx, true)
			return all, len(all), err
		}},
	} {
		b.Run("10,000 pods/"+system.name, func(b *testing.B) {
			runtime.GC()
			var m0, m1 runtime.MemStats
			runtime.ReadMemStats(&m0)
			worked := cpu()
			for b.Loop() {
				all, got, err := system.list(b.Context())
				if err != nil || got != n {
					b.Fatalf("%d pods, %v", got, err)
				}
				runtime.KeepAlive(all)
			}
			worked = cpu() - worked
			runtime.ReadMemStats(&m1)
			per := 1 / float64(b.N*n)
			b.ReportMetric(1e9*worked*per, "ns/pod")
			b.ReportMetric(float64(m1.TotalAlloc-m0.TotalAlloc)*per, "B/pod")
			b.ReportMetric(float64(m1.Mallocs-m0.Mallocs)*per, "allocs/pod")
		})
	}
}
