package process_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/process"
	"github.com/flyball-dev/flyball/examples/operators/ci/scenario"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/auth"
)

// The users that processes are: the servers know by whom they are asked.
const (
	first  = "first"
	second = "second"
)

// world is a hub and a build cluster, for processes too, and somebody who plays.
type world struct {
	*testing.T
	ctx     context.Context
	servers map[string]*localapi.Server
	configs map[string]*rest.Config
	stage   *scenario.Stage
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		T: t, ctx: klog.NewContext(t.Context(), klog.Logger{}), servers: map[string]*localapi.Server{},
		configs: map[string]*rest.Config{},
		stage:   &scenario.Stage{Dir: t.TempDir(), Patience: 5 * time.Minute},
	}
	for name, c := range map[string]*client.Client{scenario.HubName: &w.stage.Hub, scenario.BuildName: &w.stage.Build} {
		server, err := localapi.New(
			localapi.Options{
				Audit:  &audit.Log{},
				Tokens: map[string]auth.User{first: {Name: first}, second: {Name: second}},
			},
		)
		w.must(err)
		w.servers[name], w.configs[name] = server, server.RESTConfig()
		t.Cleanup(func() { _ = server.Close() })
		direct, err := client.New(w.configs[name], client.Options{Scheme: api.NewScheme()})
		w.must(err)
		*c = direct
	}
	w.must(w.stage.SetUp(w.ctx))
	return w
}

// kubeconfig is that of a process which is the user, with an entrance to each server for it alone.
func (w *world) kubeconfig(user string) (file string) {
	w.Helper()
	file = filepath.Join(w.stage.Dir, "kubeconfig-"+user)
	if _, err := os.Stat(file); err == nil {
		return file
	}
	config := clientcmdapi.NewConfig()
	for name, server := range w.servers {
		handler := server.Handler()
		entrance := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+user)
			handler.ServeHTTP(out, r)
		}))
		w.Cleanup(func() {
			entrance.CloseClientConnections()
			entrance.Close()
		})
		config.Clusters[name], config.Contexts[name] = &clientcmdapi.Cluster{Server: entrance.URL},
			&clientcmdapi.Context{Cluster: name}
	}
	w.must(clientcmd.WriteToFile(*config, file))
	return file
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// until waits for something that the operators do.
func (w *world) until(what string, holds func() bool) {
	w.Helper()
	for deadline := time.Now().Add(w.stage.Patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("not in time: %s", what)
		}
	}
}

// writes are all writes to both clusters since they were last forgotten, but those to leases.
func (w *world) writes() (all []audit.Entry) {
	for _, s := range w.servers {
		all = append(all, s.Audit().Writes()...)
	}
	return slices.DeleteFunc(all, func(e audit.Entry) bool { return e.Resource == "leases" })
}

func (w *world) forget() {
	for _, s := range w.servers {
		s.Audit().Reset()
	}
}

// requests are those of a user to a cluster.
func (w *world) requests(user, cluster string) []audit.Entry {
	return w.servers[cluster].Audit().Entries(func(e audit.Entry) bool { return e.User == user })
}

// start runs a process in this one.
func (w *world) start(o *process.Options) (stop func()) {
	w.Helper()
	w.must(o.Complete())
	f, err := process.New(w.configs, o)
	w.must(err)
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1) // what came of it
	go func() { done <- f.Run(ctx) }()
	return func() {
		w.Helper()
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
	}
}

const childArgs = "FLYBALL_TEST_CI_ARGS"

// TestChild is the program, as a process of its own: a command line, and an exit code.
func TestChild(t *testing.T) {
	args, found := os.LookupEnv(childArgs)
	if !found {
		t.Skip("only as a child")
	}
	os.Exit(process.Main(strings.Fields(args), os.Stderr))
}

// child is a process of its own.
type child struct {
	*exec.Cmd
	mu  sync.Mutex
	out bytes.Buffer
}

// Write takes the process's output.
func (c *child) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(b)
}

func (c *child) output() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.String()
}

// launch starts the program with a command line as a process of its own.
func launch(t *testing.T, args ...string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command(os.Args[0], "-test.run=^TestChild$")}
	c.Env = append(os.Environ(), childArgs+"="+strings.Join(args, " "), "GOCOVERDIR="+t.TempDir())
	c.Stdout, c.Stderr = c, c
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	return c
}

// spawn starts the program with a command line as a process of its own, which is the user.
func (w *world) spawn(user string, args ...string) *child {
	w.Helper()
	return launch(w.T, append([]string{"--kubeconfig=" + w.kubeconfig(user)}, args...)...)
}
