package localapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/peers/upstream"
)

// systems are the servers that the benchmarks compare: kube-apiserver with its etcd, which does not wait for the disk
// here, localapi behind a socket, and localapi through its in-memory transport. The clients are the same.
var systems = []struct {
	name  string
	start func(b *testing.B) *rest.Config
}{
	{"kube-apiserver", func(b *testing.B) *rest.Config {
		b.Helper()
		config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig)
		if err != nil {
			b.Fatal(err)
		}
		return config
	}},
	{"localapi over a socket", func(b *testing.B) *rest.Config {
		b.Helper()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		server := &http.Server{Handler: newServer(b).Handler()}
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		b.Cleanup(func() {
			if err := errors.Join(server.Close(), <-served); !errors.Is(err, http.ErrServerClosed) {
				b.Error(err)
			}
		})
		return &rest.Config{Host: "http://" + listener.Addr().String()}
	}},
	{"localapi", func(b *testing.B) *rest.Config {
		b.Helper()
		return newServer(b).RESTConfig()
	}},
}

func newServer(b *testing.B) *localapi.Server {
	b.Helper()
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := server.Close(); err != nil {
			b.Error(err)
		}
	})
	return server
}

// onSystems runs a benchmark with a client of each system, in a namespace of its own.
func onSystems(b *testing.B, contentType string, f func(b *testing.B, client kubernetes.Interface, namespace string)) {
	b.Helper()
	for _, s := range systems {
		b.Run(s.name, func(b *testing.B) {
			config := s.start(b)
			config.QPS, config.ContentType = -1, contentType
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				b.Fatal(err)
			}
			ns, err := client.CoreV1().Namespaces().Create(b.Context(),
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}, metav1.CreateOptions{})
			if err != nil {
				b.Fatal(err)
			}
			f(b, client, ns.Name)
		})
	}
}

// workers is how many requests are under way at a time for each processor: enough to keep a server in other processes
// busy.
const workers = 8

// measure calls op b.N times, and reports the rate and what one call costs the processors: ours and those of our
// children.
func measure(b *testing.B, op func() error) {
	b.Helper()
	if err := op(); err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(workers)
	b.ResetTimer()
	before := processorTime(b)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := op(); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
}

func benchPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
	}
}

// encodings are the content types that the benchmarks are run with.
var encodings = []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf}

// BenchmarkCreate creates Pods.
func BenchmarkCreate(b *testing.B) {
	for _, contentType := range encodings {
		b.Run(filepath.Base(contentType), func(b *testing.B) {
			onSystems(b, contentType, func(b *testing.B, client kubernetes.Interface, namespace string) {
				var n atomic.Int64
				measure(b, func() error {
					_, err := client.CoreV1().Pods(namespace).Create(b.Context(), benchPod(fmt.Sprint("p", n.Add(1))),
						metav1.CreateOptions{})
					return err
				})
			})
		})
	}
}

// BenchmarkGet gets one Pod.
func BenchmarkGet(b *testing.B) {
	for _, contentType := range encodings {
		b.Run(filepath.Base(contentType), func(b *testing.B) {
			onSystems(b, contentType, func(b *testing.B, client kubernetes.Interface, namespace string) {
				pods := client.CoreV1().Pods(namespace)
				if _, err := pods.Create(b.Context(), benchPod("p"), metav1.CreateOptions{}); err != nil {
					b.Fatal(err)
				}
				measure(b, func() error {
					_, err := pods.Get(b.Context(), "p", metav1.GetOptions{})
					return err
				})
			})
		})
	}
}

// BenchmarkFanOut updates a ConfigMap; an operation ends when each of 100 watchers has seen the update.
func BenchmarkFanOut(b *testing.B) {
	const watchers = 100
	onSystems(b, runtime.ContentTypeProtobuf, func(b *testing.B, client kubernetes.Interface, namespace string) {
		maps := client.CoreV1().ConfigMaps(namespace)
		cm, err := maps.Create(b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}},
			metav1.CreateOptions{})
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
		before := processorTime(b)
		b.ResetTimer()
		for i := range b.N {
			cm.Data = map[string]string{"n": strconv.Itoa(i)}
			if cm, err = maps.Update(b.Context(), cm, metav1.UpdateOptions{}); err != nil {
				b.Fatal(err)
			}
			for range watchers {
				<-received
			}
		}
		b.StopTimer()
		b.ReportMetric(float64(b.N*watchers)/b.Elapsed().Seconds(), "events/s")
		b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
	})
}

// BenchmarkStart is the time from nothing to the first answer; the real one's is that of etcd and kube-apiserver
// together.
func BenchmarkStart(b *testing.B) {
	b.Run("kube-apiserver", func(b *testing.B) {
		for range b.N {
			p, err := upstream.Start(b.Context(), upstream.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := p.Stop(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	b.Run("localapi", func(b *testing.B) {
		for range b.N {
			server, err := localapi.New(localapi.Options{})
			if err != nil {
				b.Fatal(err)
			}
			client, err := kubernetes.NewForConfig(server.RESTConfig())
			if err != nil {
				b.Fatal(err)
			}
			if _, err := client.CoreV1().Namespaces().Get(context.Background(), "default",
				metav1.GetOptions{}); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := server.Close(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
}

// processorTime is what this process and its living children have used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	total := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range files {
		total += childTime(file)
	}
	return total
}

// childTime is what the process of a /proc/PID/stat has used, if it is a child of this one.
//
// Source: proc(5).
func childTime(file string) time.Duration {
	const parent, user, system, tick = 1, 11, 12, 10 * time.Millisecond // places after the command's name
	data, err := os.ReadFile(file)
	if err != nil {
		return 0 // it has ended
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) <= system || fields[parent] != strconv.Itoa(os.Getpid()) {
		return 0
	}
	var ticks int64
	for _, f := range []int{user, system} {
		n, err := strconv.ParseInt(fields[f], 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * tick
}
