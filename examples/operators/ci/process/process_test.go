package process_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
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
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// parse reads a command line.
func parse(t *testing.T, args ...string) *process.Options {
	t.Helper()
	o := process.NewOptions()
	fs := pflag.NewFlagSet("ci", pflag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

// Everything that is wrong is said at once. Without flags only the default controller runs, and it is dry.
//
// Source: TestCompleteImageStreamTags, TestCompleteImageStream and TestCompleteSet of cmd/dptp-controller-manager of
// openshift/ci-tools, and what its flags require.
func TestComplete(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		want []string
	}{
		"no flags":           {"", []string{"--ci-operator-config-path is required", "--job-config-path is required"}},
		"enough":             {"--ci-operator-config-path=. --job-config-path=.", nil},
		"unknown controller": {"--controllers=promotion,testimagestreamimportcleaner", []string{`there is no "promotion"; there are promotionreconciler, test_images_distributor,`}},
		"no controller":      {"--controllers=", []string{"none is asked for"}},
		"no namespace":       {"--controllers=serviceaccount_secret_refresher", []string{"enabled-namespace is required"}},
		"a namespace":        {"--controllers=serviceaccount_secret_refresher --serviceAccountRefresherOptions.enabled-namespace=a,b", nil},
		"tags, streams, expressions": {
			"--controllers=test_images_distributor --ci-operator-config-path=. --testImagesDistributorOptions.additional-image-stream-tag=a/b:c,d/e --testImagesDistributorOptions.additional-image-stream=x,a/b --promotionReconcilerOptions.ignore-image-stream=( --port=70000",
			[]string{`"e" in namespace "d" is no image stream tag`, `"x" is no image stream: want namespace/name`, "missing closing )", "--port 70000"},
		},
		"no such profiles": {"--controllers=ephemeral_cluster_provisioner --cluster-profiles-path=nowhere", []string{"--cluster-profiles-path: open nowhere"}},
	} {
		o := parse(t, strings.Fields(c.args)...)
		err := o.Complete()
		if (err != nil) != (c.want != nil) {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range c.want {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want it to say %q", name, err, want)
			}
		}
		if c.args == "" && (!o.DryRun || len(o.Controllers) != 1 || o.Controllers[0] != process.Promotion) {
			t.Errorf("the defaults are %v, dry run %t", o.Controllers, o.DryRun)
		}
	}
}

// world is a hub and a build cluster, for processes too, and somebody who plays.
type world struct {
	*testing.T
	ctx        context.Context
	servers    map[string]*localapi.Server
	configs    map[string]*rest.Config
	stage      *scenario.Stage
	kubeconfig string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, ctx: klog.NewContext(t.Context(), klog.Logger{}), servers: map[string]*localapi.Server{}, configs: map[string]*rest.Config{}}
	w.stage = &scenario.Stage{Dir: t.TempDir(), Patience: 5 * time.Minute}
	kubeconfig := clientcmdapi.NewConfig()
	for name, c := range map[string]*client.Client{scenario.HubName: &w.stage.Hub, scenario.BuildName: &w.stage.Build} {
		server, err := localapi.New(localapi.Options{Audit: &audit.Log{}})
		w.must(err)
		w.servers[name], w.configs[name] = server, server.RESTConfig()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		w.must(err)
		ctx, stop := context.WithCancel(context.Background())
		served := make(chan error, 1) // what came of serving
		go func() { served <- server.Serve(ctx, listener) }()
		t.Cleanup(func() {
			stop()
			<-served
			_ = server.Close()
		})
		kubeconfig.Clusters[name] = &clientcmdapi.Cluster{Server: "http://" + listener.Addr().String()}
		kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name}
		direct, err := client.New(w.configs[name], client.Options{Scheme: api.NewScheme()})
		w.must(err)
		*c = direct
	}
	w.kubeconfig = filepath.Join(w.stage.Dir, "kubeconfig")
	w.must(clientcmd.WriteToFile(*kubeconfig, w.kubeconfig))
	w.must(w.stage.SetUp(w.ctx))
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// writes are all writes to both clusters since they were last forgotten.
func (w *world) writes() (all []audit.Entry) {
	for _, s := range w.servers {
		all = append(all, s.Audit().Writes()...)
	}
	return all
}

func (w *world) forget() {
	for _, s := range w.servers {
		s.Audit().Reset()
	}
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

// Dry, everything runs, and nothing changes: what would be written is asked for as a dry run, and no version moves.
func TestDryRun(t *testing.T) {
	w := newWorld(t)
	ec := &api.EphemeralCluster{}
	ec.Namespace, ec.Name, ec.Spec.CIOperator.Test.Workflow = "ephemeral-cluster", "dry", "w"
	w.must(w.stage.Hub.Create(w.ctx, ec))
	o := scenario.Options(w.stage.Dir)
	o.DryRun = true
	w.forget()
	stop := w.start(o)
	deadline := time.Now().Add(time.Minute)
	asked := func() bool {
		dry := w.servers[scenario.HubName].Audit().Entries(func(e audit.Entry) bool { return e.DryRun && e.Resource == "ephemeralclusters" })
		return len(dry) > 0
	}
	for !asked() && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	if !asked() {
		t.Error("nobody asked what would become of the cluster")
	}
	for _, e := range w.writes() {
		if !e.DryRun {
			t.Errorf("written: %v", e)
		}
	}
	after := &api.EphemeralCluster{}
	w.must(w.stage.Hub.Get(w.ctx, client.ObjectKeyFromObject(ec), after))
	if after.ResourceVersion != ec.ResourceVersion {
		t.Errorf("version %s became %s", ec.ResourceVersion, after.ResourceVersion)
	}
}

const childArgs = "FLYBALL_TEST_CI_ARGS"

// TestChild is the program, as a process of its own.
func TestChild(t *testing.T) {
	args := os.Getenv(childArgs)
	if args == "" {
		t.Skip("only as a child")
	}
	dir, kubeconfig, _ := strings.Cut(args, " ")
	o := scenario.Options(dir)
	o.Kubeconfig = kubeconfig
	o.LeaderElection.Enabled = strings.HasSuffix(os.Getenv("FLYBALL_TEST_CI_LEASE"), "yes")
	if err := process.Run(ctrl.SetupSignalHandler(), o); err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
	os.Exit(0)
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

// spawn starts the program as a process of its own.
func (w *world) spawn(lease string) *child {
	w.Helper()
	c := &child{Cmd: exec.Command(os.Args[0], "-test.run=^TestChild$")}
	c.Env = append(os.Environ(), childArgs+"="+w.stage.Dir+" "+w.kubeconfig, "FLYBALL_TEST_CI_LEASE="+lease, "GOCOVERDIR="+w.TempDir())
	c.Stdout, c.Stderr = c, c
	w.must(c.Start())
	w.Cleanup(func() { _ = c.Process.Kill() })
	return c
}

// The kubeconfig changes: the program ends without an error and gives the lease away at once.
func TestKubeconfigChanges(t *testing.T) {
	w := newWorld(t)
	c := w.spawn("yes")
	lease := &coordinationv1.Lease{}
	holder := func() string {
		w.must(client.IgnoreNotFound(w.stage.Hub.Get(w.ctx, client.ObjectKey{Namespace: "ci", Name: "ci-controllers"}, lease)))
		if lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
	for deadline := time.Now().Add(time.Minute); holder() == "" && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if holder() == "" {
		t.Fatalf("nobody took the lease:\n%s", c.output())
	}
	text, err := os.ReadFile(w.kubeconfig)
	w.must(err)
	w.must(os.WriteFile(w.kubeconfig, append(text, "# changed\n"...), 0o600))
	if err := c.Wait(); err != nil {
		t.Errorf("it ended with %v:\n%s", err, c.output())
	}
	if h := holder(); h != "" {
		t.Errorf("%s holds the lease still", h)
	}
}

// A signal ends it without an error.
func TestSignal(t *testing.T) {
	w := newWorld(t)
	c := w.spawn("no")
	for deadline := time.Now().Add(time.Minute); !strings.Contains(c.output(), "Manager started") && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	w.must(c.Process.Signal(syscall.SIGTERM))
	if err := c.Wait(); err != nil {
		t.Errorf("it ended with %v:\n%s", err, c.output())
	}
}
