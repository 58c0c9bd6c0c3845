package localapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/cel"
	"github.com/flyball-dev/flyball/peers/upstream"
)

// plane is the real API server that all tests of this package share.
var plane *upstream.ControlPlane

func TestMain(m *testing.M) {
	code, err := withPlane(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withPlane(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute) // the first build
	defer cancel()
	plane, err = upstream.Start(ctx, upstream.Options{Log: os.Stderr})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	return m.Run(), nil
}

// realSide is the real server as a script sees it.
func realSide(t *testing.T, s *script) *side {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return newSide("kube-apiserver", config.Host, client, s)
}

// ourSide is a new server of ours.
func ourSide(t *testing.T, s *script) *side {
	t.Helper()
	server, err := localapi.New(localapi.Options{CEL: cel.New(), ClusterObjects: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	config := server.RESTConfig()
	return newSide("localapi", config.Host, &http.Client{Transport: config.Transport}, s)
}
