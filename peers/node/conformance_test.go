package node

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/onsi/ginkgo/v2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/peers/upstream"
)

const (
	// subjects are the groups of specs that are run: those of the controllers that flyball manager has, and of what
	// depends on them. LeftOut are specs among them: those that restart parts of the cluster while others run, and
	// those for the machines of a cloud.
	subjects = `\[sig-(?:apps\] (?:Deployment|ReplicaSet)|api-machinery\] (?:Garbage collector|AdmissionWebhook)` +
		`|network\] (?:EndpointSlice|EndpointSliceMirroring|Endpoints|EndpointsController|Services)) `
	leftOut = `\[(?:Disruptive|Provider:)`

	// withTheirs and withOurs name the two runs.
	withTheirs = "kube-controller-manager"
	withOurs   = "flyball manager"

	// processes is how many specs run at once. Most of their time they wait.
	processes = 4

	// attempts is how often a spec runs that fails. The time limits of some are too short for a machine that does other
	// work, too: some create a hundred pods.
	attempts = 2

	// podPackages are the Debian packages in the images that specs run in pods.
	podPackages = "bind9-dnsutils,curl,iproute2,netcat-openbsd,nginx-light,wget"
	// podRegistry is where e2e.test is told to take these images from. No such host exists: the nodes have them.
	podRegistry = "e2e.invalid"
)

// TestConformance runs Kubernetes' own specs on a cluster of two nodes with all of flyball manager's controllers, and
// on another one with kube-controller-manager's.
func TestConformance(t *testing.T) {
	if os.Getenv("FLYBALL_CONFORMANCE") == "" {
		t.Skip("it takes an hour and a docker engine: make test-node-conformance runs it")
	}
	able(t)
	bin, err := upstream.Build(t.Context(), t.Output(), "agnhost", "e2e.test", "ginkgo", "kubectl")
	must(t, err)
	results := map[string][]types.SpecReport{}
	for _, with := range []string{withOurs, withTheirs} {
		run(t, with, func(t *testing.T) {
			c := newConformance(t, bin, with)
			results[with] = c.specs(t)
			if with == withOurs {
				nothingForbidden(t, c.node)
			}
		})
	}
	list := readExceptions(t)
	for i := range list {
		list[i].Specs = slices.DeleteFunc(list[i].Specs, func(spec string) bool { return !chosen(spec) })
	}
	for _, problem := range judge(list, results) {
		t.Error(problem)
	}
	markdown := conformanceTable(results)
	t.Logf("specs of Kubernetes:\n%s", markdown)
	if os.Getenv("FLYBALL_SPECS") == "" {
		onPage(t, markdown)
	}
}

// focus returns the regular expression of the specs that ginkgo is to run: FLYBALL_SPECS may narrow [subjects].
func focus() string { return cmp.Or(os.Getenv("FLYBALL_SPECS"), subjects) }

// chosen reports whether a spec of this full text is to run.
func chosen(spec string) bool {
	match := func(expression string) bool { return regexp.MustCompile(expression).MatchString(spec) }
	return match(subjects) && match(focus()) && !match(leftOut)
}

// conformance is a cluster for the specs.
type conformance struct {
	*kindCluster
	node  *Node
	repos string // a file that tells e2e.test where the images are
}

// newConformance makes the cluster, which has the images and the controllers.
func newConformance(t *testing.T, bin, with string) *conformance {
	t.Helper()
	// kubeadm's own value
	flag := "*,bootstrap-signer-controller,token-cleaner-controller"
	if with == withOurs {
		flag += ",-" + strings.Join(controllers.Known(), ",-")
	}
	c := &conformance{kindCluster: newKind(t, fmt.Sprintf(`kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
kubeadmConfigPatches:
- |
  apiVersion: kubeadm.k8s.io/v1beta4
  kind: ClusterConfiguration
  controllerManager:
    extraArgs:
    - {name: controllers, value: %q}
  # The cluster is not to survive the machine.
  etcd:
    local:
      extraArgs:
      - {name: unsafe-no-fsync, value: "true"}`, flag))}
	kubeconfig := filepath.Join(c.dir, "kubeconfig")
	c.environment = append(c.environment, "KUBECONFIG="+kubeconfig)
	c.repos = filepath.Join(c.dir, "repos.yaml")
	must(t, os.WriteFile(c.repos, []byte("promoterE2eRegistry: "+podRegistry+"\n"), 0o644))

	c.shell(t, "exec kind create cluster --name flyball --config $CLUSTER --kubeconfig $KUBECONFIG --wait 3m")
	images := c.podImages(t, bin)
	if with == withOurs {
		image, err := Image(t.Context(), "flyball")
		must(t, err)
		images = append(images, image)
	}
	c.shell(t, "exec kind load docker-image --name flyball "+strings.Join(images, " "))
	c.node = ofKind(t, kubeconfig)
	c.running(t, flag)
	if with == withOurs {
		c.deploy(t, kubeconfig)
	}
	must(t, c.node.AwaitDeployment(t.Context(), system, "coredns"))
	return c
}

// running checks that kube-controller-manager runs with a value of its flag controllers: kind drops a patch of
// kubeadm's configuration that it cannot use.
func (c *conformance) running(t *testing.T, flag string) {
	t.Helper()
	pods, err := c.node.Client.CoreV1().Pods(system).List(t.Context(),
		metav1.ListOptions{LabelSelector: "component=kube-controller-manager"})
	must(t, err)
	if len(pods.Items) != 1 || !slices.Contains(pods.Items[0].Spec.Containers[0].Command, "--controllers="+flag) {
		t.Fatalf("want one kube-controller-manager with --controllers=%s; there is %+v", flag, pods.Items)
	}
}

// deploy deploys flyball manager with all its controllers, as docs/kind does: a manager outside of the cluster runs
// until the deployed one is ready.
func (c *conformance) deploy(t *testing.T, kubeconfig string) {
	t.Helper()
	outside := exec.Command(filepath.Join(c.root, "bin", "image", "flyball", "program"), "manager",
		"--kubeconfig="+kubeconfig, "--port=0")
	outside.Stdout, outside.Stderr, outside.SysProcAttr = io.Discard, io.Discard, upstream.ChildAttributes()
	must(t, outside.Start())
	t.Cleanup(func() { _ = outside.Process.Kill() }) // it has ended, unless the test failed before
	must(t, c.node.Apply(t.Context(), filepath.Join(c.root, "peers", "node", "testdata", "manager")))
	must(t, c.node.AwaitDeployment(t.Context(), system, manager))
	must(t, outside.Process.Signal(syscall.SIGTERM))
	must(t, outside.Wait())
	_, err := c.node.AwaitLeader(t.Context(), "")
	must(t, err)
}

// podImages builds the images that specs run in pods, and returns their names. The names are those that e2e.test lists.
func (c *conformance) podImages(t *testing.T, bin string) (names []string) {
	t.Helper()
	debian := debianImage("flyball-e2e", podPackages)
	must(t, buildDebian(t.Context(), t.Output(), debian, podPackages))
	list := exec.CommandContext(t.Context(), filepath.Join(bin, "e2e.test"), "--list-images")
	list.Env = append(os.Environ(), "KUBE_TEST_REPO_LIST="+c.repos)
	all, err := output(list)
	must(t, err)
	for _, program := range []string{"agnhost", "busybox", "nginx"} {
		args := []string{
			"build", "--quiet", "--build-arg", "DEBIAN=" + debian, "--file", "e2e/Dockerfile",
			"--target", program,
		}
		before := len(names)
		for image := range strings.FieldsSeq(all) {
			if strings.HasPrefix(image, podRegistry+"/"+program+":") && !slices.Contains(names, image) {
				names = append(names, image)
				args = append(args, "--tag", image)
			}
		}
		if len(names) == before {
			t.Fatalf("e2e.test lists no image %s:\n%s", program, all)
		}
		_, err := docker(t.Context(), append(args, c.onlyAgnhost(t, bin))...)
		must(t, err)
	}
	return names
}

// onlyAgnhost returns a folder with agnhost and nothing else: docker sends all of it to the engine.
func (c *conformance) onlyAgnhost(t *testing.T, bin string) string {
	t.Helper()
	dir := filepath.Join(c.dir, "agnhost")
	must(t, os.MkdirAll(dir, 0o755))
	program, err := os.ReadFile(filepath.Join(bin, "agnhost"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "agnhost"), program, 0o755))
	return dir
}

// specs runs the specs, and returns the reports of those that were not left out.
func (c *conformance) specs(t *testing.T) []types.SpecReport {
	t.Helper()
	reports, problems, err := upstream.Specs{
		Bin: c.bin, Kubeconfig: filepath.Join(c.dir, "kubeconfig"),
		Flags: []string{
			fmt.Sprint("--procs=", processes), "--timeout=2h", "--focus=" + focus(), "--skip=" + leftOut,
			fmt.Sprint("--flake-attempts=", attempts),
		},
		Args: []string{"--num-nodes=2"},
		Env:  append(c.environment, "KUBE_TEST_REPO_LIST="+c.repos), Output: t.Output(),
	}.Run(t.Context())
	must(t, err)
	for _, p := range problems {
		t.Error(p)
	}
	for _, r := range reports {
		if r.NumAttempts > 1 {
			t.Logf("%q failed at first", r.FullText())
		}
	}
	return slices.DeleteFunc(reports, func(r types.SpecReport) bool { return !chosen(r.FullText()) })
}
