package swapin

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// TestKilledLeader: of two replicas, each a process, the one that leads is killed in the middle of changes. The other
// comes to the same with controller-runtime's parts and with Flyball's.
func TestKilledLeader(t *testing.T) {
	operator := filepath.Join(t.TempDir(), "operator")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", operator, "./example")
	build.Dir = "../../interop/controllerruntime"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the operator: %v\n%s", err, out)
	}
	var mu sync.Mutex
	outcomes := map[string]map[string]string{}
	t.Run("all", func(t *testing.T) { // Most of the time all wait for a lease to run out.
		for _, p := range parts {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				cards := killed(t, operator, p.flags)
				mu.Lock()
				defer mu.Unlock()
				outcomes[p.name] = cards
			})
		}
	})
	for name, cards := range outcomes {
		if !maps.Equal(cards, outcomes["controller-runtime"]) || len(cards) != 20 {
			t.Errorf("%s: %v, controller-runtime: %v", name, cards, outcomes["controller-runtime"])
		}
	}
}

// killed runs two replicas, kills the leader, and returns the cards in the end.
func killed(t *testing.T, operator string, flags []string) map[string]string {
	kubeconfig := embedded(t)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	c, ctx := kubernetes.NewForConfigOrDie(config), t.Context()
	start := func() (kill func()) {
		cmd := exec.Command(operator, append([]string{"--metrics=0", "--leader-elect"}, flags...)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill = sync.OnceFunc(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		t.Cleanup(kill)
		return kill
	}
	holder := func(not string) (who string) {
		until(t, "a leader", func() bool {
			lease, err := c.CoordinationV1().Leases("default").Get(ctx, "cards", metav1.GetOptions{})
			if err == nil && lease.Spec.HolderIdentity != nil {
				who = *lease.Spec.HolderIdentity
			}
			return who != "" && who != not
		})
		return who
	}
	kill := start()
	first := holder("")
	start()
	fill(t, c, 20)
	until(t, "all cards", func() bool { return len(cards(ctx, t, c)) == 20 })
	change := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`)
	for i := range 10 {
		if i == 5 {
			kill()
		}
		if _, err := c.AppsV1().Deployments("default").Patch(ctx, fmt.Sprintf("web-%d", i),
			"application/strategic-merge-patch+json", change, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.CoreV1().ConfigMaps("default").Delete(ctx, "web-15-card", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	holder(first)
	var all map[string]string
	until(t, "all cards as they should be", func() bool {
		all = cards(ctx, t, c)
		now := 0
		for i := range 10 {
			if all[fmt.Sprintf("web-%d-card", i)] == "web:2" {
				now++
			}
		}
		return now == 10 && len(all) == 20
	})
	return all
}

// cards returns the images on the cards.
func cards(ctx context.Context, t *testing.T, c kubernetes.Interface) map[string]string {
	t.Helper()
	list, err := c.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, card := range list.Items {
		if len(card.OwnerReferences) > 0 {
			all[card.Name] = card.Data["image"]
		}
	}
	return all
}

// until waits until something is so.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
