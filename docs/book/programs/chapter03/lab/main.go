// Command lab is the experiment of chapter 3 of the book: a reflector that follows a server, and words that a reader
// types to disturb the two.
package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/reflector"
	"github.com/flyball-dev/flyball/localapi"
)

type pods = listwatch.ListerWatcher[*corev1.Pod]

// lab is a server that can be disturbed. It is the [listwatch.ListerWatcher] of the reflector, and writes down what
// that asks for.
type lab struct {
	mu      sync.Mutex
	out     io.Writer
	typed   time.Time // when the last word was typed
	server  *localapi.Server
	through pods
	// away is true while the server does not answer. breakWatch breaks the connection of the open watch.
	away       bool
	breakWatch context.CancelFunc
	// names are the Pods on the server, saved those in the backup. made counts all that ever were.
	names, saved []string
	made         int
	// deltas are what the reflector passes on, copy the names that they make.
	deltas *deltafifo.DeltaFIFO[*corev1.Pod]
	copy   map[string]bool
}

func main() {
	if err := run(context.Background(), os.Stdin, os.Stdout, rand.Float64); err != nil {
		log.Fatal(err)
	}
}

// run runs the experiment until there are no more words. random is the random part of the reflector's pauses.
func run(ctx context.Context, in io.Reader, out io.Writer, random func() float64) error {
	l := &lab{
		out: out, typed: time.Now(), breakWatch: func() {},
		deltas: deltafifo.New[*corev1.Pod](), copy: map[string]bool{},
	}
	if err := l.restore(ctx); err != nil {
		return err
	}
	defer func() { _ = l.server.Close() }()
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, klog.Logger{}))
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel()
	parts.Go(func() {
		_ = reflector.New(l, l.deltas, reflector.Options[*corev1.Pod]{
			Resource: "pods", Namespace: "default", Backoff: reflector.Backoff{Rand: random},
		}).Run(ctx)
	})
	for words := bufio.NewScanner(in); words.Scan(); {
		if err := l.do(ctx, strings.TrimSpace(words.Text())); err != nil {
			return err
		}
	}
	return nil
}

// do does what a word says.
func (l *lab) do(ctx context.Context, word string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.typed = time.Now()
	switch word {
	case "write":
		l.made++
		return l.create(ctx, fmt.Sprintf("web-%d", l.made))
	case "cut":
		l.breakWatch()
	case "away":
		l.away = true
		l.breakWatch()
	case "back":
		l.away = false
	case "forget":
		return l.server.Compact(ctx)
	case "backup":
		l.saved = l.names
	case "restore":
		old := l.server
		if err := l.restore(ctx); err != nil {
			return err
		}
		l.breakWatch()
		return old.Close()
	default:
		fmt.Fprintln(l.out, "The words are write, cut, away, back, forget, backup and restore.")
	}
	return nil
}

// restore puts a server in place that has what is in the backup, and its versions.
func (l *lab) restore(ctx context.Context) error {
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		return err
	}
	l.server, l.names = server, nil
	l.through = listwatch.NewRESTListerWatcher[*corev1.Pod](l.client().RESTClient(), listwatch.RESTOptions{
		Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod", Namespace: "default",
	})
	for _, name := range l.saved {
		if err := l.create(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) client() corev1client.CoreV1Interface {
	return kubernetes.NewForConfigOrDie(l.server.RESTConfig()).CoreV1()
}

func (l *lab) create(ctx context.Context, name string) error {
	l.names = append(slices.Clip(l.names), name)
	_, err := l.client().Pods("default").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx:1.28"}}},
	}, metav1.CreateOptions{})
	return err
}

// say prints what happened, and how many seconds after the last word.
func (l *lab) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, "%6.1fs  %s\n", time.Since(l.typed).Seconds(), fmt.Sprintf(format, args...))
}

// connect returns the server, or an error if it does not answer.
func (l *lab) connect() (pods, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away {
		return nil, syscall.ECONNREFUSED
	}
	return l.through, nil
}

// List implements [listwatch.ListerWatcher].
func (l *lab) List(ctx context.Context, o listwatch.ListOptions, yield func(*corev1.Pod) error,
) (result listwatch.ListResult, err error) {
	asked := "list, not older than " + o.ResourceVersion
	switch {
	case o.Limit == 1:
		asked = "one object of the newest list"
	case o.ResourceVersion == "":
		asked = "list, newest"
	case o.ResourceVersion == "0":
		asked = "list, of any age"
	}
	server, err := l.connect()
	if err == nil {
		result, err = server.List(ctx, o, yield)
	}
	if err != nil {
		l.say("%s: %v", asked, err)
	} else {
		l.say("%s: version %s", asked, result.ResourceVersion)
	}
	return result, err
}

// Watch implements [listwatch.ListerWatcher].
func (l *lab) Watch(ctx context.Context, o listwatch.WatchOptions) (listwatch.Watch[*corev1.Pod], error) {
	l.take()
	l.say("watch from %s", o.ResourceVersion)
	server, err := l.connect()
	if err != nil {
		return nil, err
	}
	open, breakIt := context.WithCancel(ctx)
	w, err := server.Watch(open, o)
	if err != nil {
		breakIt()
		l.say("the watch fails: %v", err)
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.breakWatch = breakIt
	return &watch{Watch: w, lab: l, open: open, breakIt: breakIt}, nil
}

// watch is a watch whose connection can break.
type watch struct {
	listwatch.Watch[*corev1.Pod]
	lab     *lab
	open    context.Context // ends when the connection breaks
	breakIt context.CancelFunc
}

// Next implements [listwatch.Watch].
func (w *watch) Next(ctx context.Context) (listwatch.Event[*corev1.Pod], error) {
	w.lab.take()
	event, err := w.Watch.Next(ctx)
	if err != nil && ctx.Err() == nil {
		if w.open.Err() != nil {
			err = syscall.ECONNRESET
		}
		w.lab.say("the watch ends: %v", err)
	}
	return event, err
}

// Close implements [listwatch.Watch].
func (w *watch) Close() error {
	defer w.breakIt()
	return w.Watch.Close()
}

// take applies to the copy what the reflector has passed on. The reflector's goroutine calls it before each watch and
// each event, so that the order of the lines is the same in every run.
func (l *lab) take() {
	for _, d := range l.deltas.Take(nil) {
		switch d.Type {
		case deltafifo.Replace:
			l.copy = map[string]bool{}
			for _, pod := range d.Objects {
				l.copy[pod.Name] = true
			}
		case deltafifo.Upsert:
			l.copy[d.Object.Name] = true
		default:
			continue
		}
		names := strings.Join(slices.Sorted(maps.Keys(l.copy)), " ")
		l.say("the copy has %s, at version %s", cmp.Or(names, "nothing"), d.ResourceVersion)
	}
}
