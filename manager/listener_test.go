package manager

import (
	"net"
	"runtime"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// A manager whose health server cannot serve any more stops. Otherwise it would run on while probes take it for dead.
func TestBrokenListenerStopsTheManager(t *testing.T) {
	m, err := New(&rest.Config{Host: "http://127.0.0.1:1"}, Options{HealthAddr: "127.0.0.1:0", ServerTimeout: -1})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.ListenOn(listener)
	done := make(chan error, 1)
	go func() { done <- m.Run(t.Context()) }()
	for m.HealthAddr() == "" {
		runtime.Gosched()
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || !strings.HasPrefix(err.Error(), "serve on 127.0.0.1:0: ") {
		t.Errorf("error %v", err)
	}
}
