package others

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/flyball-dev/flyball/internal/certs"
	"github.com/flyball-dev/flyball/peers/upstream"
)

// side is a server for one run of one suite.
type side struct {
	kubeconfig string
	start      time.Duration // until a client could use it
	stop       func() cost   // ends it
}

// cost is what a run took of the server.
type cost struct {
	memory   int // the peak, in KiB, of all its processes
	requests int // of the suite, and few of the server itself
}

const embedded = "localapi"

// serverOf is a kind of server.
type serverOf struct {
	name  string
	start func(*testing.T, operator) side
}

// sides are the servers, in the order of the table.
var sides = []serverOf{
	{"kube-apiserver", realServer},
	{embedded, ourServer},
}

// realServer starts etcd and kube-apiserver.
func realServer(t *testing.T, _ operator) side {
	t.Helper()
	authority, err := certs.NewAuthority(1)
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.crt")
	write(t, ca, string(authority.PEM()))
	begin := time.Now()
	control, err := upstream.Start(context.WithoutCancel(t.Context()), upstream.Options{
		AuthorizationMode: "RBAC", APIServerArgs: []string{"--client-ca-file=" + ca},
	})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	before := served(t, control.Kubeconfig)
	return side{withCertificate(t, control.Kubeconfig, authority), took, func() cost {
		c := cost{requests: served(t, control.Kubeconfig) - before}
		for _, pid := range control.PIDs() {
			c.memory += peak(t, pid)
		}
		if err := control.Stop(); err != nil {
			t.Error(err)
		}
		return c
	}}
}

// withCertificate returns a kubeconfig like the one at path, whose user has a client certificate in place of a token,
// and without references to files. envtest's users are like that, and cluster-api copies only these fields.
func withCertificate(t *testing.T, path string, authority *certs.Authority) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := api.FlattenConfig(config); err != nil {
		t.Fatal(err)
	}
	certificate, err := authority.Client("admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Token = ""
		if user.ClientCertificateData, user.ClientKeyData, err = certs.PEM(certificate); err != nil {
			t.Fatal(err)
		}
	}
	path = filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// served is how many requests kube-apiserver has answered. Its own loops ask it some, a few a minute.
func served(t *testing.T, path string) (n int) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := kubernetes.NewForConfigOrDie(config).RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		n += int(m.GetCounter().GetValue())
	}
	return n
}

// ourServer starts the embedded API in a process of its own.
func ourServer(t *testing.T, o operator) side {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), serverProgram(t), kubeconfig, o.delay.String())
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(stdout)
	if line, err := out.ReadString('\n'); err != nil {
		t.Fatalf("the server said %q: %v", line, err)
	}
	return side{kubeconfig, time.Since(begin), func() cost {
		c := cost{memory: peak(t, cmd.Process.Pid)}
		if err := hold.Close(); err != nil {
			t.Error(err)
		}
		var byVerb map[string]int
		if err := json.NewDecoder(out).Decode(&byVerb); err != nil {
			t.Error(err)
		}
		for _, n := range byVerb {
			c.requests += n
		}
		if _, err := io.Copy(io.Discard, out); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		return c
	}}
}

// serverProgram builds the embedded API's program. Go's cache makes it quick after the first time.
func serverProgram(t *testing.T) string {
	t.Helper()
	target := filepath.Join(t.TempDir(), "server")
	command(t, ".", "go", "build", "-mod=readonly", "-o", target, "./server")
	return target
}

// peak is the most memory that a process has had, in KiB.
func peak(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "VmHWM:"); found {
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("process %d has no peak", pid)
	return 0
}
