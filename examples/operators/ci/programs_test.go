package main

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

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/process"
	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/examples/operators/internal/program"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/manager"
)

// The users that processes are: the servers know by whom they are asked.
const (
	first  = "first"
	second = "second"
)

// programs is a hub and a build cluster, for processes too, and somebody who plays.
type programs struct {
	*optest.World
	servers map[string]*localapi.Server
	configs map[string]*rest.Config
	stage   *Stage
}

func newPrograms(t *testing.T) *programs {
	t.Helper()
	w := &programs{
		World: optest.NewWorld(t, nil), servers: map[string]*localapi.Server{}, configs: map[string]*rest.Config{},
		stage: &Stage{Dir: t.TempDir(), Patience: 5 * time.Minute},
	}
	for name, c := range map[string]*client.Client{Hub: &w.stage.Hub, Build01: &w.stage.Build} {
		server, err := localapi.New(
			localapi.Options{
				Audit:  &audit.Log{},
				Tokens: map[string]auth.User{first: {Name: first}, second: {Name: second}},
			},
		)
		w.Must(err)
		w.servers[name], w.configs[name] = server, server.RESTConfig()
		t.Cleanup(func() { _ = server.Close() })
		*c = newClient(t, w.configs[name])
	}
	w.Client = w.stage.Hub
	w.Must(w.stage.SetUp(w.Ctx))
	return w
}

// newClient returns a client that knows the operators' kinds.
func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: api.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// kubeconfig is that of a process which is the user, with an entrance to each server for it alone.
func (w *programs) kubeconfig(user string) (file string) {
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
	w.Must(clientcmd.WriteToFile(*config, file))
	return file
}

// writes are all writes to both clusters since they were last forgotten, but those to leases.
func (w *programs) writes() (all []audit.Entry) {
	for _, s := range w.servers {
		all = append(all, s.Audit().Writes()...)
	}
	return slices.DeleteFunc(all, func(e audit.Entry) bool { return e.Resource == "leases" })
}

func (w *programs) forget() {
	for _, s := range w.servers {
		s.Audit().Reset()
	}
}

// requests are those of a user to a cluster.
func (w *programs) requests(user, cluster string) []audit.Entry {
	return w.servers[cluster].Audit().Entries(func(e audit.Entry) bool { return e.User == user })
}

// start runs a process in this one.
func (w *programs) start(o *process.Options) (stop func()) {
	w.Helper()
	return startOn(w.World, w.configs, o)
}

// startOn runs a process in this one, on the clusters of these configs.
func startOn(w *optest.World, configs map[string]*rest.Config, o *process.Options) (stop func()) {
	w.Helper()
	w.Must(o.Complete())
	f, err := process.New(configs, o)
	w.Must(err)
	return w.Go(f.Run)
}

const childArgs = "FLYBALL_TEST_CI_ARGS"

// TestMain is the program itself in a child process: a command line, and an exit code.
func TestMain(m *testing.M) {
	if args, found := os.LookupEnv(childArgs); found {
		ctx, release := manager.SetupSignals(context.Background())
		err := process.Main(ctx, strings.Fields(args), os.Stderr)
		release()
		os.Exit(program.Code("ci", err, os.Stderr))
	}
	os.Exit(m.Run())
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
	c := &child{Cmd: exec.Command(os.Args[0])}
	c.Env = append(os.Environ(), childArgs+"="+strings.Join(args, " "), "GOCOVERDIR="+t.TempDir())
	c.Stdout, c.Stderr = c, c
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	return c
}

// spawn starts the program with a command line as a process of its own, which is the user.
func (w *programs) spawn(user string, args ...string) *child {
	w.Helper()
	return launch(w.T, append([]string{"--kubeconfig=" + w.kubeconfig(user)}, args...)...)
}
