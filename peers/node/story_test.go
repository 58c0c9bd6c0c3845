package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// rollouts is how often story rolls out a version under measured traffic.
const rollouts = 4

// story takes a Deployment through its life under traffic: rolled out, stuck, freed, one pod unready for a while,
// deleted. No request may fail.
func story(t *testing.T, n *Node) figures {
	w := newWeb(t, n, "web")
	x, f := w.measure(t, rollouts)
	x.whole(t, f)

	x = newTraffic(t, w.url)
	w.stuck(t)
	w.unready(t)
	x.whole(t, x.end(t))
	w.remove(t)
	return f
}

// withoutPreStop rolls out a version of pods that do not serve while they end. Requests may fail.
func withoutPreStop(t *testing.T, n *Node) figures {
	w := newWeb(t, n, "web")
	w.patch(t, `"lifecycle":null`)
	w.rolledOut(t)
	w.awaitEndpoints(t, replicas)
	_, f := w.measure(t, 1)
	w.remove(t)
	return f
}

// measure rolls out the versions in turn, the second one first, and returns what traffic has seen.
func (w *web) measure(t *testing.T, times int) (*traffic, figures) {
	t.Helper()
	x := newTraffic(t, w.url)
	must(t, eventually(t.Context(), "the first version does not answer", x.seen(Web[0])))
	var took time.Duration
	for i := range times {
		begin := time.Now()
		w.patch(t, fmt.Sprintf(`"image":%q`, Web[(i+1)%2]))
		w.rolledOut(t)
		took += time.Since(begin)
		w.awaitEndpoints(t, replicas)
	}
	must(t, eventually(t.Context(), "the second version does not answer", x.seen(Web[1])))
	f := x.end(t)
	f.rollout = took / time.Duration(times)
	return x, f
}

// seen returns nil once a version has answered.
func (x *traffic) seen(version string) func() error {
	return func() error {
		if x.answered(version) == 0 {
			return fmt.Errorf("no answer %q", version)
		}
		return nil
	}
}

// stuck rolls out pods that do not become ready. The rollout stands still with all old pods serving, and goes on when
// the new ones are told to be ready.
func (w *web) stuck(t *testing.T) {
	t.Helper()
	old := w.pods(t)
	w.patch(t, `"env":[{"name":"UNREADY","value":"1"}]`)
	var fresh string
	must(t, eventually(t.Context(), "no new pod runs", func() error {
		for name, pod := range w.pods(t) {
			if old[name] == nil && pod.Status.PodIP != "" {
				fresh = name
				return nil
			}
		}
		return fmt.Errorf("there are %d pods", len(w.pods(t)))
	}))
	for range 10 {
		if have := w.pods(t); len(have) != replicas+1 || have[fresh] == nil {
			t.Fatalf("%d pods with a rollout that is stuck, want %d", len(have), replicas+1)
		}
		w.awaitEndpoints(t, replicas)
		<-time.After(300 * time.Millisecond)
	}
	must(t, eventually(t.Context(), "the rollout does not go on", func() error {
		pods := w.pods(t)
		for name, pod := range pods {
			if old[name] == nil && pod.Status.PodIP != "" && pod.Status.ContainerStatuses[0].State.Running != nil {
				w.switchReadiness(t, name, true)
			}
			if old[name] != nil || len(pods) != replicas || !pod.Status.ContainerStatuses[0].Ready {
				return fmt.Errorf("%d pods, %s among them", len(pods), name)
			}
		}
		return nil
	}))
	w.rolledOut(t)
	w.awaitEndpoints(t, replicas)
}

// unready makes one pod unready and ready again: it leaves the endpoints and comes back.
func (w *web) unready(t *testing.T) {
	t.Helper()
	for name := range w.pods(t) {
		w.switchReadiness(t, name, false)
		w.awaitEndpoints(t, replicas-1)
		w.switchReadiness(t, name, true)
		w.awaitEndpoints(t, replicas)
		return
	}
}

// demo plays the story of flyball demo on the node: rolled out, stuck, rolled back, scaled, deleted.
func demo(t *testing.T, n *Node) {
	binary := filepath.Join(t.TempDir(), "flyball")
	text, err := os.ReadFile(n.file("flyball"))
	must(t, err)
	must(t, os.WriteFile(binary, text, 0o755))
	out, err := output(exec.CommandContext(t.Context(), binary, "demo", "--kubeconfig", n.Kubeconfig, "--timeout", "3m",
		"--images", Web[0]+","+Web[1]))
	must(t, err)
	t.Logf("\n%s", out)
	onPage(t, "```text\n"+out+"\n```")
}
