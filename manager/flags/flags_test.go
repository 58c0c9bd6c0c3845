package flags_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/inspect"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/flags"
	"github.com/flyball-dev/flyball/manager/metrics"
)

func ExampleNew() {
	f := flags.New("my-operator")
	f.Port = 8081 // a default of one's own
	set := pflag.NewFlagSet("my-operator", pflag.ContinueOnError)
	f.AddFlags(set)
	if err := set.Parse([]string{"--leader-elect-lease-duration=30s", "--bind-address=0.0.0.0"}); err != nil {
		fmt.Println(err)
	}
	o := f.ManagerOptions(nil)
	fmt.Println(o.HealthAddr, o.LeaderElection.Name, o.LeaderElection.LeaseDuration, o.Serving.SelfSigned,
		o.Serving.Review)
	// Output: 0.0.0.0:8081 my-operator 30s true true
}

func parse(t *testing.T, args ...string) *flags.Flags {
	t.Helper()
	f, set := flags.New("test"), pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Inspect = inspect.New(inspect.Options{})
	f.AddFlags(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestServingByAddress(t *testing.T) {
	registry := metrics.New()
	for _, c := range []struct {
		args    []string
		health  string
		metrics string
		debug   string
		serving manager.Serving
	}{
		{nil, "127.0.0.1:10257", "127.0.0.1:10257", "", manager.Serving{}},
		{[]string{"--secure-port=9999"}, "127.0.0.1:9999", "127.0.0.1:9999", "", manager.Serving{}},
		{[]string{"--port=0", "--profiling"}, "", "", "", manager.Serving{}},
		{[]string{"--bind-address=::1", "--profiling"}, "[::1]:10257", "[::1]:10257", "[::1]:10257", manager.Serving{}},
		{
			[]string{"--bind-address=0.0.0.0"},
			"0.0.0.0:10257", "0.0.0.0:10257", "",
			manager.Serving{SelfSigned: true, Review: true},
		},
		{
			[]string{"--bind-address=0.0.0.0", "--insecure-serving"},
			"0.0.0.0:10257", "0.0.0.0:10257", "",
			manager.Serving{Insecure: true},
		},
		{
			[]string{"--bind-address=0.0.0.0", "--tls-cert-file=c", "--tls-private-key-file=k"},
			"0.0.0.0:10257",
			"0.0.0.0:10257", "",
			manager.Serving{CertFile: "c", KeyFile: "k", Review: true},
		},
		{
			[]string{"--inspect-address=localhost:0"},
			"127.0.0.1:10257", "127.0.0.1:10257", "localhost:0",
			manager.Serving{},
		},
		{
			[]string{"--bind-address=0.0.0.0", "--port=0", "--inspect-address=127.0.0.1:6060"},
			"", "", "127.0.0.1:6060",
			manager.Serving{SelfSigned: true, Review: true},
		},
	} {
		o := parse(t, c.args...).ManagerOptions(registry)
		if o.HealthAddr != c.health || o.MetricsAddr != c.metrics || o.DebugAddr != c.debug || o.Serving != c.serving {
			t.Errorf("%q: %q %q %q %+v", c.args, o.HealthAddr, o.MetricsAddr, o.DebugAddr, o.Serving)
		}
		if on := strings.Contains(fmt.Sprint(c.args), "--inspect-address"); on != (o.Inspect != nil) {
			t.Errorf("%q: Inspect is %v", c.args, o.Inspect)
		}
	}
	if o := parse(t).ManagerOptions(nil); o.MetricsAddr != "" {
		t.Errorf("metrics of nobody at %s", o.MetricsAddr)
	}
	if o := parse(t, "--controller-shutdown-timeout=0s").ManagerOptions(nil); o.GracefulTimeout >= 0 {
		t.Errorf("no grace is %v", o.GracefulTimeout)
	}
	configz := fmt.Sprint(parse(t, "--profiling", "--kube-api-burst=7").ManagerOptions(nil).Configz)
	if !strings.Contains(configz, "kube-api-burst:7") {
		t.Errorf("configz %s", configz)
	}
}

func TestRESTConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	const text = `{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"http://one"}}],
"contexts":[{"name":"c","context":{"cluster":"c","user":"c"}}],"users":[{"name":"c","user":{}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := parse(t, "--kubeconfig="+path, "--master=http://two", "--kube-api-qps=-1").RESTConfig()
	if err != nil || config.Host != "http://two" || config.QPS != -1 || !strings.HasSuffix(config.UserAgent, "/test") {
		t.Errorf("%+v, %v", config, err)
	}
	if _, err := parse(t, "--kubeconfig=/none").RESTConfig(); err == nil ||
		!strings.HasPrefix(err.Error(), "--kubeconfig: ") {
		t.Errorf("error %v", err)
	}
}

func TestWithoutAKubeconfig(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", t.TempDir())
	for _, c := range []struct{ env, arg, says string }{
		{"", "", "there is no kubeconfig: give one with --kubeconfig or $KUBECONFIG"},
		{"/none", "", "$KUBECONFIG names /none, which does not exist"},
		{empty, "", "$KUBECONFIG: " + empty + " names no cluster"},
		{"/none", empty, "--kubeconfig: " + empty + " names no cluster"},
	} {
		t.Setenv("KUBECONFIG", c.env)
		if _, err := parse(t, "--kubeconfig="+c.arg).RESTConfig(); err == nil || err.Error() != c.says {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestLogsAsJSON(t *testing.T) {
	var out bytes.Buffer
	stop := parse(t, "--logging-format=json", "--v=2").StartLogging(&out)
	klog.V(2).InfoS("Hello", "object", klog.KRef("a", "b"), "duration", time.Second)
	klog.V(3).InfoS("Too much")
	stop()
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line["msg"] != "Hello" || line["object"] == nil {
		t.Errorf("logged %q: %v", out.String(), err)
	}
	stop = parse(t).StartLogging(&out)
	stop()
}

func TestValidateNamesTheFlag(t *testing.T) {
	for _, c := range []struct{ arg, says string }{
		{"--port=70000", "--port 70000: it must be between 0 and 65535"},
		{"--secure-port=70000", "--secure-port 70000: it must be between 0 and 65535"},
		{"--tls-cert-file=x", "need each other"},
		{"--logging-format=xml", `--logging-format "xml": it must be text or json`},
		{"--kube-api-burst=0", "--kube-api-burst 0: it must be at least 1"},
		{"--kube-api-content-type=foo", `--kube-api-content-type "foo"`},
		{"--leader-elect-resource-name=", "--leader-elect-resource-name is empty: give the lease a name"},
		{"--inspect-address=6060", "--inspect-address: address 6060: missing port in address"},
		{"--inspect-address=127.0.0.1:http", `--inspect-address "127.0.0.1:http": the port must be between 0 and 65535`},
		{"--inspect-address=:6060", "--inspect-address :6060 is not loopback: give --tls-cert-file"},
		{"--controller-shutdown-timeout=-1s", "--controller-shutdown-timeout -1s: it must not be negative"},
	} {
		if err := parse(t, c.arg).Validate(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.arg, err)
		}
	}
	for _, args := range [][]string{
		{},
		{"--inspect-address=127.0.0.1:0"},
		{"--inspect-address=127.0.0.1:10257", "--profiling"},
		{"--inspect-address=:6060", "--insecure-serving"},
		{"--inspect-address=:6060", "--bind-address=0.0.0.0"},
		{"--inspect-address=:6060", "--tls-cert-file=c", "--tls-private-key-file=k"},
	} {
		if err := parse(t, args...).Validate(); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
	err := parse(t, "--profiling", "--inspect-address=127.0.0.1:6060").Validate()
	if err == nil || !strings.Contains(err.Error(),
		"--profiling serves profiles at 127.0.0.1:10257, --inspect-address at 127.0.0.1:6060: leave --profiling out") {
		t.Error(err)
	}
}

// A program that sets nothing to inspect has no flag for it.
func TestInspectAddressNeedsAnInspector(t *testing.T) {
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.New("test").AddFlags(set)
	if set.Lookup("inspect-address") != nil {
		t.Error("--inspect-address exists")
	}
}
