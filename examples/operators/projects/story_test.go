package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/examples/operators/internal/storyteller"
	"github.com/flyball-dev/flyball/examples/operators/projects/api"
	"github.com/flyball-dev/flyball/examples/operators/projects/controller"
)

func TestStory(t *testing.T) { optest.Story(t, tell, 13) }

func TestFlags(t *testing.T) {
	optest.Refuses(t, run, map[string]string{
		"nonsense":                     `unknown argument "nonsense"`,
		"--port=99999":                 "--port 99999",
		"--poll=x":                     "invalid argument",
		"--kubeconfig=/does/not/exist": "/does/not/exist",

		"--control-plane-kubeconfig=/does/not/exist": "--control-plane-kubeconfig: ",

		"--master=http://127.0.0.1:1 --leader-elect=false --port=0 --control-plane-url={{": "unclosed action",
		"--master=http://127.0.0.1:1 --leader-elect=false --port=0 --project-selector=!!":  "LabelSelector",
	})
}

// TestOnServe: on a cluster in a process of its own the sample's projects become ready, and everything ends when it
// is told to.
func TestOnServe(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	flyball := optest.Flyball(t)
	reader, writer := io.Pipe()
	ended := make(chan error, 1) // the end of onServe, from its goroutine
	go func() {
		err := onServe(ctx, flyball, writer)
		_ = writer.CloseWithError(err)
		ended <- err
	}()
	kubeconfig, planes := "", ""
	for lines := bufio.NewScanner(reader); planes == "" && lines.Scan(); {
		if _, file, ok := strings.Cut(lines.Text(), "KUBECONFIG="); ok {
			kubeconfig = file
		}
		if _, url, ok := strings.Cut(lines.Text(), "--server "); ok {
			planes, _, _ = strings.Cut(url, " ")
		}
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	if kubeconfig == "" {
		t.Fatal(<-ended)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(t, err)
	scheme, err := controller.NewScheme()
	must(t, err)
	c, err := client.New(config, client.Options{Scheme: scheme})
	must(t, err)
	objects, err := manifest.ReadFiles([]string{"sample.yaml"}, nil)
	must(t, err)
	must(t, manifest.Install(ctx, c, objects))
	for _, name := range []string{"shop", "blog"} {
		_, err := storyteller.Wait(ctx, name+" is ready", func() (bool, string, error) {
			var p api.Project
			err := c.Get(ctx, client.ObjectKey{Name: name}, &p)
			return conditions.Is(p.Status.Conditions, api.Ready, metav1.ConditionTrue),
				fmt.Sprint(p.Status.Conditions), err
		})
		must(t, err)
	}
	for host, want := range map[string]int{"": http.StatusOK, "evil.example": http.StatusForbidden} {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, planes+"/api/v1/configmaps", nil)
		must(t, err)
		if host != "" {
			r.Host = host
		}
		answer, err := http.DefaultClient.Do(r)
		must(t, err)
		must(t, answer.Body.Close())
		if answer.StatusCode != want {
			t.Errorf("the control plane of shop, asked for as %q: %s, want %d", host, answer.Status, want)
		}
	}
	stop()
	must(t, <-ended)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
