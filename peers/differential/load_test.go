package differential

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/peers/upstream"
)

// TestLoad prints what it costs to create, roll out and delete FLYBALL_LOAD Deployments of ten pods each, with a Service each: with
// kube-controller-manager and with flyball manager, as both limit themselves by default and without limits. It asserts that both come
// to the end; the figures are for people, with the machine's load beside them.
func TestLoad(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("FLYBALL_LOAD"))
	if err != nil || n < 1 {
		t.Skip("FLYBALL_LOAD does not say how many Deployments")
	}
	raced := flyball // the others run with the race detector, which costs
	flyball = filepath.Join(t.TempDir(), "flyball")
	defer func() { flyball = raced }()
	build := exec.Command("go", "build", "-o", flyball, "./cmd/flyball")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build flyball: %v\n%s", err, out)
	}
	rows := []string{
		fmt.Sprintf("| %d Deployments × 10 | created | rolled | deleted | CPU | peak memory | calls |", n),
		"|---|---|---|---|---|---|---|",
	}
	for _, limit := range []string{"20", "10000"} {
		for _, ours := range []bool{false, true} {
			rows = append(rows, measure(t, n, ours, limit))
		}
	}
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("%s\nload of the machine at the end: %s", strings.Join(rows, "\n"), load)
}

// measure runs one side and returns its row.
func measure(t *testing.T, n int, ours bool, limit string) string {
	t.Helper()
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	text := "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived, ResponseStarted]\nrules: [{level: Metadata}]\n"
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := upstream.Options{Log: os.Stderr, APIServerArgs: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + log}}
	burst := map[string]string{"20": "30", "10000": "10000"}[limit]
	flags := []string{"--kube-api-qps=" + limit, "--kube-api-burst=" + burst}
	program, agent := "kube-controller-manager", "kube-controller-manager/"
	if ours {
		program, agent = "flyball", "flyball-manager"
	} else {
		o.Controllers, o.ManagerArgs = compared, flags
	}
	on, err := upstream.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := on.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if ours {
		p := startManager(t, on.Kubeconfig, append(flags, "--leader-elect=false", "--controllers="+join(compared))...)
		defer func() {
			if err := p.stop(t); err != nil {
				t.Error(err)
			}
		}()
	}
	startKubelet(t, on)
	created, rolled, deleted := lives(t, kubernetes.NewForConfigOrDie(adminConfig(t, on)), n)
	cpu, memory := usage(t, program, on.Kubeconfig)
	return fmt.Sprintf("| %s, qps %s | %s | %s | %s | %s | %d MiB | %s |", program, limit, created, rolled, deleted, cpu, memory, calls(t, log, agent))
}

// lives creates, rolls and deletes n Deployments and returns how long each took to come to its end.
func lives(t *testing.T, client kubernetes.Interface, n int) (created, rolled, deleted time.Duration) {
	t.Helper()
	ctx, ns := t.Context(), "default"
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	timed := func(write func(name string) error, done func(d []appsv1.Deployment) bool) time.Duration {
		begin := time.Now()
		if err := inParallel(numbers, func(i int) error { return write(fmt.Sprintf("web-%d", i)) }); err != nil {
			t.Fatal(err)
		}
		patient(t, time.Hour, func() string {
			all, err := client.AppsV1().Deployments(ns).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
			if err != nil {
				return err.Error()
			}
			if !done(all.Items) {
				return "not all Deployments are as asked for"
			}
			return ""
		})
		return time.Since(begin).Round(100 * time.Millisecond)
	}
	complete := func(all []appsv1.Deployment) bool {
		return len(all) == n && !slices.ContainsFunc(all, func(d appsv1.Deployment) bool {
			s := d.Status
			return s.ObservedGeneration != d.Generation || s.UpdatedReplicas != 10 || s.Replicas != 10 || s.AvailableReplicas != 10
		})
	}
	created = timed(func(name string) error {
		if _, err := client.CoreV1().Services(ns).Create(ctx, service(name), metav1.CreateOptions{}); err != nil {
			return err
		}
		_, err := client.AppsV1().Deployments(ns).Create(ctx, deployment(name, 10), metav1.CreateOptions{})
		return err
	}, complete)
	rolled = timed(func(name string) error {
		patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"image:2"}]}}}}`)
		_, err := client.AppsV1().Deployments(ns).Patch(ctx, name, "application/strategic-merge-patch+json", patch, metav1.PatchOptions{})
		return err
	}, complete)
	deleted = timed(func(name string) error {
		if err := client.CoreV1().Services(ns).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		return client.AppsV1().Deployments(ns).Delete(ctx, name, metav1.DeleteOptions{})
	}, func(all []appsv1.Deployment) bool {
		pods, err := client.CoreV1().Pods(ns).List(context.WithoutCancel(ctx), metav1.ListOptions{Limit: 1})
		return err == nil && len(all)+len(pods.Items) == 0
	})
	return created, rolled, deleted
}

// usage is the CPU time and the peak of resident memory, in MiB, of the program that was given the kubeconfig.
func usage(t *testing.T, program, kubeconfig string) (time.Duration, int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		line, err := os.ReadFile(path)
		command := strings.Split(string(line), "\x00")
		if err != nil || filepath.Base(command[0]) != program || !slices.Contains(command, "--kubeconfig="+kubeconfig) {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(path), "stat"))
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+2:]))
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		status, err := os.ReadFile(filepath.Join(filepath.Dir(path), "status"))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(status), "VmHWM:")
		kib, _ := strconv.Atoi(strings.Fields(rest)[0])
		return time.Duration(user+system) * 10 * time.Millisecond, kib / 1024
	}
	t.Fatalf("%s with %s does not run", program, kubeconfig)
	return 0, 0
}

// calls counts the requests of an agent in the audit log, by verb.
func calls(t *testing.T, log, agent string) string {
	t.Helper()
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	counts := map[string]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry struct{ Verb, UserAgent string }
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(entry.UserAgent, agent) {
			counts[entry.Verb]++
		}
	}
	var parts []string
	for _, verb := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", verb, counts[verb]))
	}
	return strings.Join(parts, ", ")
}
