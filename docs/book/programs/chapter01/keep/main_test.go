package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
)

const page = "01-control-loop"

// clocked writes lines with the time since it began.
type clocked struct {
	strings.Builder
	began time.Time
}

func (c *clocked) Write(line []byte) (int, error) {
	return fmt.Fprintf(&c.Builder, "%4.1fs  %s", time.Since(c.began).Seconds(), line)
}

// TestChapter01Keep runs the controller while somebody else changes Pods, and while the server has a fault.
func TestChapter01Keep(t *testing.T) {
	var trace string
	synctest.Test(t, func(t *testing.T) {
		var faulty atomic.Bool
		server := localapi.NewTestWith(t, localapi.Options{Gate: gate.Funcs{
			OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
				if faulty.Load() && r.Resource == "pods" {
					return gate.FailWith(apierrors.NewInternalError(errors.New("the disk is full")))
				}
				return gate.Verdict{}
			},
		}})
		pods := kubernetes.NewForConfigOrDie(server.RESTConfig()).CoreV1().Pods("default")
		out := &clocked{began: time.Now()}
		log.SetFlags(0)
		log.SetOutput(out)
		defer log.SetOutput(os.Stderr)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan struct{}) // closed when the controller has ended
		go func() { defer close(ended); run(ctx, pods) }()
		after := func(d time.Duration, does string, do func() error) {
			time.Sleep(d)
			log.Println("           you", does)
			if err := do(); err != nil {
				t.Error(err)
			}
		}
		after(4900*time.Millisecond, "delete web-2", func() error {
			return pods.Delete(t.Context(), "web-2", metav1.DeleteOptions{})
		})
		after(5*time.Second, "create web-4", func() error {
			_, err := pods.Create(t.Context(), podOf("web-4"), metav1.CreateOptions{})
			return err
		})
		after(5*time.Second, "delete web-1, and for two seconds the server answers 500", func() error {
			defer faulty.Store(true)
			return pods.Delete(t.Context(), "web-1", metav1.DeleteOptions{})
		})
		time.Sleep(2 * time.Second)
		faulty.Store(false)
		time.Sleep(2 * time.Second)
		list, err := pods.List(t.Context(), metav1.ListOptions{})
		if err != nil || names(list) != "web-1 web-2 web-3" {
			t.Errorf("in the end there are %s: %v", names(list), err)
		}
		cancel()
		<-ended
		trace = out.String()
	})
	book.Trace(t, page, trace)
}

func names(list *corev1.PodList) string {
	all := make([]string, 0, len(list.Items))
	for _, pod := range list.Items {
		all = append(all, pod.Name)
	}
	return strings.Join(all, " ")
}

// TestChapter01Lines: each line that the chapter says will be replaced stands in the program.
func TestChapter01Lines(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	table := "| this line | and its fault | is replaced in chapter |\n|---|---|---|\n"
	for _, row := range []struct{ line, fault, chapter string }{
		{"list, err := pods.List(ctx", "asks for everything, although almost nothing changes", "2: watch the changes"},
		{"continue", "waits for a second, whatever has failed", "3: follow the server through every failure"},
		{"cache[pod.Name] = true", "forgets all it knew and begins anew", "4: take the changes, in order, all of them"},
		{"LabelSelector: \"app=web\"", "leaves the searching to the server", "5: search in a copy of your own"},
		{"time.Sleep(time.Second)", "comes too early or too late", "6: be told when to look"},
		{
			"for _, key := range queue", "takes one key after the other, some of them twice",
			"7: share a queue among workers",
		},
		{
			"log.Println(\"try again in a second:\", err)", "tries hopeless cases for ever",
			"8: look at the error, and wait longer",
		},
		{"sync(ctx, pods, key, cache[key])", "believes the copy, which is late", "9: know how late it is"},
		{
			"wanted := slices.Contains(goal, key)", "has its goal compiled in",
			"10 and 11: read the goal from objects, and plan",
		},
		{
			"run(context.Background()", "does not notice that a second process does the same",
			"12: agree on one that leads",
		},
	} {
		if !strings.Contains(string(source), row.line) {
			t.Errorf("the program does not have %q any more", row.line)
		}
		table += fmt.Sprintf("| `%s` | %s | %s |\n", row.line, row.fault, row.chapter)
	}
	book.Block(t, page, table)
}
