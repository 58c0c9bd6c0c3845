package programs

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/localapi/cluster"
	"github.com/flyball-dev/flyball/localapi/kubelet"
	"github.com/flyball-dev/flyball/peers/upstream"
)

// known are the errors that the programs log behind kube-apiserver, too.
var known = []*regexp.Regexp{
	regexp.MustCompile(`The manifest file is empty, ignoring`),
	regexp.MustCompile(`is not as new as written version`),
	regexp.MustCompile(`Operation cannot be fulfilled on .*: the object has been modified`),
	regexp.MustCompile(`unable to fetch metrics from resource metrics API: the server could not find the requested`),
	regexp.MustCompile(`because it is being terminated`),
	// An object is deleted with its namespace while a worker still needs it: each once in 70 rounds behind flyball
	// serve, and not seen in six behind kube-apiserver, which gives the same answer to a request that comes too late.
	regexp.MustCompile(`"Error processing resource quota work item" err="resourcequotas \\"quota\\" not found"`),
	regexp.MustCompile(`failed to query scale subresource for Deployment/.*: deployments.apps \\"web\\" not found`),
}

// logged matches a line of a log that is an error: an entry of klog, or a stack.
var logged = regexp.MustCompile(`(?m)^(E\d{4} |panic: |fatal error: |WARNING: DATA RACE).*$`)

// controllersElsewhere are the flags of flyball serve for what kube-controller-manager and kube-scheduler do behind it.
var controllersElsewhere = []string{"--controllers=", "--namespaces=false", "--scheduler=false"}

// side is an API server with the programs that run behind it.
type side struct {
	t       *testing.T
	bin     string // the folder of the programs
	config  string // the path of the kubeconfig
	client  kubernetes.Interface
	logs    map[string]string // paths, by program
	pids    map[string]int
	resides map[string][]int // MiB of memory after each round, by program
}

func TestProgramsBehindFlyball(t *testing.T) {
	s := newSide(t)
	s.startFlyball(controllersElsewhere...)
	s.run(s.restConfig())
}

// startFlyball builds and starts flyball serve.
func (s *side) startFlyball(flags ...string) {
	s.t.Helper()
	binary := filepath.Join(s.t.TempDir(), "flyball")
	build := exec.Command("go", "build", "-o", binary, "./cmd/flyball")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		s.t.Fatalf("build flyball: %v\n%s", err, out)
	}
	s.config = filepath.Join(s.t.TempDir(), "kubeconfig")
	s.start("flyball", binary, append([]string{"serve", "--kubeconfig=" + s.config}, flags...)...)
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if text, err := os.ReadFile(s.logs["flyball"]); err == nil && bytes.Contains(text, []byte("KUBECONFIG=")) {
			return
		} else if time.Now().After(end) {
			s.t.Fatalf("flyball serve does not start: %v\n%s", err, text)
		}
	}
}

func TestProgramsBehindKubeAPIServer(t *testing.T) {
	s := newSide(t)
	plane, err := upstream.Start(t.Context(), upstream.Options{Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	s.config = plane.Kubeconfig
	config := s.restConfig()
	nodes, err := cluster.New(config, cluster.Options{
		NoNamespaces: true, NoGarbageCollector: true, Kubelet: kubelet.Options{NoScheduler: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- nodes.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	s.run(config)
}

// newSide builds the programs, and those that are named.
func newSide(t *testing.T, names ...string) *side {
	bin, err := upstream.Build(t.Context(), t.Output(),
		append(names, "kube-controller-manager", "kube-scheduler", "kubectl")...)
	if err != nil {
		t.Fatal(err)
	}
	return &side{t: t, bin: bin, logs: map[string]string{}, pids: map[string]int{}, resides: map[string][]int{}}
}

func (s *side) restConfig() *rest.Config {
	config, err := clientcmd.BuildConfigFromFlags("", s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	config.QPS = -1
	s.client = kubernetes.NewForConfigOrDie(config)
	return config
}

// run plays the story behind the API server, again and again until its time is over.
func (s *side) run(config *rest.Config) {
	lasts := time.Duration(0)
	if value := os.Getenv("FLYBALL_PROGRAMS"); value != "" {
		var err error
		if lasts, err = time.ParseDuration(value); err != nil {
			s.t.Fatalf("FLYBALL_PROGRAMS: %v", err)
		}
	}
	s.startPrograms()
	begun := time.Now()
	s.kubectl("apply", "-f", "testdata/cronjob.yaml")
	for round := 0; round == 0 || time.Since(begun) < lasts; round++ {
		s.rollOut(s.t.Context(), fmt.Sprintf("round-%d", round))
		s.measure(time.Since(begun))
	}
	s.checkCronJob(s.t.Context(), begun)
	s.checkMemory()
	s.checkLogs()
}

// startPrograms starts kube-controller-manager and kube-scheduler.
func (s *side) startPrograms() {
	s.t.Helper()
	for program, flags := range map[string][]string{
		"kube-controller-manager": managerFlags(s.t), "kube-scheduler": {"--leader-elect=false", "--secure-port=0"},
	} {
		s.start(program, filepath.Join(s.bin, program), append(flags, "--kubeconfig="+s.config)...)
	}
}

// managerFlags are those that make controllermanager prints, without the kubeconfig.
func managerFlags(t *testing.T) []string {
	command := exec.Command("make", "-s", "controllermanager")
	command.Dir = filepath.Join("..", "..")
	command.Stderr = t.Output()
	out, err := command.Output()
	if err != nil {
		t.Fatalf("make controllermanager: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return slices.DeleteFunc(strings.Fields(lines[len(lines)-1])[1:], func(flag string) bool {
		return strings.HasPrefix(flag, "--kubeconfig=")
	})
}

// start starts a program that runs until the end of the test.
func (s *side) start(name, path string, args ...string) {
	s.t.Helper()
	log, err := os.Create(filepath.Join(s.t.TempDir(), name+".log"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close() // the child has its own
	command := exec.Command(path, args...)
	command.Stdout, command.Stderr, command.SysProcAttr = log, log, upstream.ChildAttributes()
	if err := command.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it was killed
	})
	s.logs[name], s.pids[name] = log.Name(), command.Process.Pid
}

func (s *side) kubectl(args ...string) {
	s.t.Helper()
	command := exec.Command(filepath.Join(s.bin, "kubectl"), append(args, "--kubeconfig="+s.config)...)
	out, err := command.CombinedOutput()
	if err != nil {
		s.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// measure notes how much memory each program has.
func (s *side) measure(at time.Duration) {
	line := at.Round(time.Second).String()
	for _, name := range slices.Sorted(maps.Keys(s.pids)) {
		s.resides[name] = append(s.resides[name], s.memory(name, "VmRSS:"))
		line += fmt.Sprintf("  %s %d MiB", name, s.resides[name][len(s.resides[name])-1])
	}
	s.t.Log(line)
}

// memory is a size in the status of a program's process, in MiB.
func (s *side) memory(program, field string) int {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pids[program]))
	if err != nil {
		s.t.Fatalf("%s has ended: %v", program, err)
	}
	_, rest, _ := strings.Cut(string(text), field)
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		s.t.Fatalf("memory of %s: %v", program, err)
	}
	return kib / 1024
}

// checkMemory compares the middle of the second quarter of the rounds with that of the last.
func (s *side) checkMemory() {
	for name, mib := range s.resides {
		if n := len(mib); n >= 16 {
			middle := func(part []int) int {
				part = slices.Sorted(slices.Values(part))
				return part[len(part)/2]
			}
			if before, after := middle(mib[n/4:n/2]), middle(mib[n*3/4:]); after > before+before/5 {
				s.t.Errorf("%s grows: it had %d MiB, and has %d MiB after %d rounds", name, before, after, n)
			}
		}
	}
}

// checkLogs reports the errors in the logs of all programs, each only once.
func (s *side) checkLogs() {
	for name, path := range s.logs {
		text, err := os.ReadFile(path)
		if err != nil {
			s.t.Fatal(err)
		}
		told := map[string]bool{}
		for _, line := range logged.FindAllString(string(text), -1) {
			if slices.ContainsFunc(known, func(k *regexp.Regexp) bool { return k.MatchString(line) }) {
				continue
			}
			_, message, _ := strings.Cut(line, "] ")
			if kind := varies.ReplaceAllString(message, "…"); !told[kind] {
				told[kind] = true
				s.t.Errorf("%s logged an error that it does not log behind kube-apiserver:\n%s", name, line)
			}
		}
	}
}

// varies matches what differs between lines of the same kind.
var varies = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|\d+|-[a-z0-9]{5}\b`)
