package differential

import (
	"context"
	"fmt"
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
)

// TestLoad prints the cost of creating, rolling out and deleting FLYBALL_LOAD Deployments of ten pods each, with a
// Service each: with kube-controller-manager and with flyball manager, with their default rate limits and without
// limits. It asserts that both finish. The figures are for readers; the machine's load is printed beside them.
func TestLoad(t *testing.T) {
	n := size(t, "FLYBALL_LOAD")
	buildWithoutRace(t)
	times := []string{
		fmt.Sprintf(
			"| %d Deployments × 10 | created | rolled | deleted | CPU | outside HTTP and TLS | peak heap | peak "+
				"resident |", n,
		),
		"|---|---|---|---|---|---|---|---|",
	}
	calls := []string{"| calls | all | " + strings.Join(verbs, " | ") + " |", "|---|---|" +
		strings.Repeat("---|", len(verbs))}
	for _, limit := range limits(t) {
		for _, ours := range []bool{false, true} {
			s := startSubject(t, ours, compared, limit)
			startKubelet(t, s.plane)
			s.begin(t)
			created, rolled, deleted := lives(t, s.client, n)
			c := s.end(t)
			s.stop(t)
			name := fmt.Sprintf("%s, %s", s.name, limit)
			times = append(times, fmt.Sprintf("| %s | %s | %s | %s | %s |", name, created, rolled, deleted, c.cells()))
			calls = append(calls, fmt.Sprintf("| %s | %s |", name, callCells(c.calls)))
			fmt.Println(times[len(times)-1]) // An hour of measuring is not lost when the next one fails.
			fmt.Println(calls[len(calls)-1])
		}
	}
	report(append(append(times, ""), calls...))
}

// limits are those on requests that are measured with: kube-controller-manager's own and none, or the first or the
// second alone, as FLYBALL_LIMIT says: default or none.
func limits(t *testing.T) []limit {
	t.Helper()
	own, none := limit{"20", "30"}, limit{"10000", "10000"}
	switch only := os.Getenv("FLYBALL_LIMIT"); only {
	case "":
		return []limit{own, none}
	case "default":
		return []limit{own}
	case "none":
		return []limit{none}
	default:
		t.Fatalf("FLYBALL_LIMIT is %q; it is default, none or empty", only)
		return nil
	}
}

// limit is one on requests a second, and at once.
type limit struct{ qps, burst string }

func (l limit) String() string {
	if l.qps == "10000" {
		return "no limit"
	}
	return fmt.Sprintf("qps %s, burst %s", l.qps, l.burst)
}

// cells are the processor times and the memory.
func (c cost) cells() string {
	return fmt.Sprintf("%s | %s | %d MiB | %d MiB", c.cpu, c.outside.Round(10*time.Millisecond), c.heap, c.memory)
}

// verbs are the columns of a table of calls. Events are counted apart.
var verbs = []string{"create", "update", "patch", "delete", "get", "list", "watch", "events"}

// callCells are all calls, and those of each verb.
func callCells(calls map[string]int) string {
	sum := 0
	for _, n := range calls {
		sum += n
	}
	cells := []string{strconv.Itoa(sum)}
	for _, verb := range verbs {
		cells = append(cells, strconv.Itoa(calls[verb]))
	}
	return strings.Join(cells, " | ")
}

// report prints a table, and how busy the machine is.
func report(lines []string) {
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("%s\n\nload of the machine at the end: %s", strings.Join(lines, "\n"), load)
}

// size is what the environment says, or the test is skipped.
func size(t *testing.T, variable string) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv(variable))
	if err != nil || n < 1 {
		t.Skip(variable + " does not say how many")
	}
	return n
}

// buildWithoutRace builds the measured programs without the race detector, which would slow them down.
func buildWithoutRace(t *testing.T) {
	t.Helper()
	raced := flyball
	t.Cleanup(func() { flyball = raced })
	flyball = filepath.Join(t.TempDir(), "flyball")
	build := exec.Command("go", "build", "-o", flyball, "./cmd/flyball")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build flyball: %v\n%s", err, out)
	}
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
			return s.ObservedGeneration != d.Generation || s.UpdatedReplicas != 10 || s.Replicas != 10 ||
				s.AvailableReplicas != 10
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
		_, err := client.AppsV1().Deployments(ns).Patch(ctx, name, "application/strategic-merge-patch+json", patch,
			metav1.PatchOptions{})
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
