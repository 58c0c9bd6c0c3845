package console

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/cmd/flyball/serve"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
)

// setUp is what the reader has typed before.
const setUp = ". docs/book/shell/api.sh; pods=/api/v1/namespaces/default/pods"

// block returns the function that compares a block of a terminal with the page.
func block(page string) func(t *testing.T, text string) {
	return func(t *testing.T, text string) {
		t.Helper()
		book.Block(t, page, "```console\n"+strings.TrimRight(text, "\n")+"\n```")
	}
}

const controlLoop = "01-control-loop"

var console = block(controlLoop)

// TestChapter01Console types what the chapter says.
func TestChapter01Console(t *testing.T) {
	x := Open(t, serve.Options{Kubelet: true})
	t.Run("serve", func(t *testing.T) {
		console(t, "$ bin/flyball serve --controllers= --kubeconfig bin/kubeconfig\n"+x.Serve)
	})
	t.Run("version", func(t *testing.T) {
		console(t, x.Run(t, "", ". docs/book/shell/api.sh", `api GET /version | grep -e major -e minor`))
	})
	t.Run("create", func(t *testing.T) {
		console(t, x.Run(t, setUp,
			"pods=/api/v1/namespaces/default/pods",
			`api POST $pods -d '{"metadata": {"name": "web-1", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "nginx:1.28"}]}}' >/dev/null`))
	})
	t.Run("get", func(t *testing.T) {
		running(t, x, "web-1")
		console(t, x.Run(t, setUp, `api GET $pods/web-1 | grep -E '^ {2,4}"(kind|name|uid|spec|nodeName|status|phase|podIP)'`))
	})
	t.Run("keep", func(t *testing.T) { keep(t, x) })
	t.Run("kubectl", func(t *testing.T) { kubectl(t, x) })
}

// running waits until a Pod runs.
func running(t *testing.T, x *Terminal, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := x.Client.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok && pod.Status.Phase == corev1.PodRunning {
			return
		}
	}
	t.Fatalf("%s does not run", name)
}

// keep runs keep.sh in a second terminal while the first deletes a Pod.
func keep(t *testing.T, x *Terminal) {
	loop := x.Start(t, "", "exec sh docs/book/shell/keep.sh")
	defer loop.Stop()
	said := "$ sh docs/book/shell/keep.sh\n" + loop.Line() + loop.Line()
	x.Run(t, setUp, "api DELETE $pods/web-1 >/dev/null")
	said += loop.Line()
	console(t, said)
}

// kubectl runs the commands of the table in the chapter, where kubectl is there.
func kubectl(t *testing.T, x *Terminal) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip(err)
	}
	text, err := os.ReadFile(filepath.Join(book.Dir(), controlLoop+".md"))
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx:1.28"}}},
	}
	if _, err := x.Client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	commands := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		_, command, found := strings.Cut(line, "| `kubectl ")
		if !found {
			continue
		}
		commands++
		command, _, _ = strings.Cut(command, "`")
		if out := x.Run(t, "", "kubectl "+command+" || printf 'not %s' ok"); strings.Contains(out, "not ok") {
			t.Error(out)
		}
	}
	if commands < 4 {
		t.Errorf("the chapter has %d commands of kubectl in its table", commands)
	}
}

// TestChapter01Scripts shows the scripts.
func TestChapter01Scripts(t *testing.T) {
	for _, name := range []string{"keep.sh"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(book.Dir(), "shell", name))
			if err != nil {
				t.Fatal(err)
			}
			book.Block(t, controlLoop, "```sh\n"+strings.TrimSpace(string(text))+"\n```")
		})
	}
}
