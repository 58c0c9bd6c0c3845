package client_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
)

// TestRedirectToAnotherHost: clients and informers do not send their token to the target of a redirect.
func TestRedirectToAnotherHost(t *testing.T) {
	var stolen atomic.Int64
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			stolen.Add(1)
		}
	}))
	defer thief.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL, BearerToken: "secret"}
	const want = "where credentials are not sent"

	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, &corev1.ConfigMap{})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a read: %v, want %q", err, want)
	}
	err = c.Create(t.Context(), &corev1.Namespace{})
	if err == nil {
		t.Error("a write has succeeded")
	}

	f, err := informer.NewFactory(config, informer.FactoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := informer.For[*corev1.Pod](f); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	for f.Health()[0].Err == nil {
		runtime.Gosched()
	}
	stop()
	<-ended
	if err := f.Health()[0].Err; !strings.Contains(err.Error(), want) {
		t.Errorf("an informer: %v, want %q", err, want)
	}
	if n := stolen.Load(); n > 0 {
		t.Errorf("the token was sent to another host %d times", n)
	}
}
