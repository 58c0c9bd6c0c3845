package providers

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/flyball-dev/flyball/multicluster"
)

// kubeconfigOf returns a kubeconfig. Its arguments are pairs: the name of a context, and the host of the context's
// cluster. The first context is the current one.
func kubeconfigOf(contextsAndHosts ...string) string {
	var contexts, clusters string
	for i := 0; i < len(contextsAndHosts); i += 2 {
		name, host := contextsAndHosts[i], contextsAndHosts[i+1]
		contexts += fmt.Sprintf("- {name: %q, context: {cluster: %q, user: u}}\n", name, name)
		clusters += fmt.Sprintf("- {name: %q, cluster: {server: %q}}\n", name, "https://"+host)
	}
	return fmt.Sprintf(
		"apiVersion: v1\nkind: Config\ncurrent-context: %q\nusers: [{name: u, user: {token: "+
			"t}}]\ncontexts:\n%sclusters:\n%s", contextsAndHosts[0], contexts, clusters,
	)
}

func ExampleNewKubeconfig() {
	file := filepath.Join(os.TempDir(), fmt.Sprintf("kubeconfig-%d", os.Getpid()))
	text := kubeconfigOf("eu", "eu.example", "admin@us", "us.example")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	defer os.Remove(file)
	provider := NewKubeconfig(file, KubeconfigOptions{})
	fleet := &recorder{} // in place of a multicluster.Manager's fleet
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	fmt.Println(provider.Run(ctx, fleet), fleet.Names())
	// Output: <nil> admin-us eu
}

// folder is a folder and a running provider that checks it.
type folder struct {
	t     *testing.T
	dir   string
	fleet *recorder
	p     multicluster.Provider
	log   bytes.Buffer
}

// inFolder runs test in a bubble. prepare makes the initial files and returns the path to watch.
func inFolder(t *testing.T, o KubeconfigOptions, prepare func(w *folder) string, test func(w *folder)) {
	synctest.Test(t, func(t *testing.T) {
		w := &folder{t: t, dir: t.TempDir(), fleet: &recorder{}}
		w.p = NewKubeconfig(filepath.Join(w.dir, prepare(w)), o)
		ctx, cancel := context.WithCancel(
			klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&w.log)))),
		)
		done := make(chan error)
		go func() { done <- w.p.Run(ctx, w.fleet) }()
		synctest.Wait()
		test(w)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// put replaces a file in one step.
func (w *folder) put(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	w.must(os.WriteFile(path+".new", []byte(text), 0o600))
	w.must(os.Rename(path+".new", path))
}

func (w *folder) remove(name string) {
	w.t.Helper()
	w.must(os.Remove(filepath.Join(w.dir, name)))
}

func (w *folder) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// wants waits for three checks of the files, and then compares the fleet's records since the last call with want.
func (w *folder) wants(want string) {
	w.t.Helper()
	time.Sleep(3*time.Second + time.Millisecond)
	synctest.Wait()
	if got := w.fleet.Log(); got != want {
		w.t.Errorf("the fleet heard %q, want %q", got, want)
	}
}

// wantsHealth checks that each line of Health contains one of these texts.
func (w *folder) wantsHealth(texts ...string) {
	w.t.Helper()
	var lines []string
	if err := w.p.Health(); err != nil {
		lines = strings.Split(err.Error(), "\n")
	}
	ok := len(lines) == len(texts)
	for i := range min(len(lines), len(texts)) {
		ok = ok && strings.Contains(lines[i], texts[i])
	}
	if !ok {
		w.t.Errorf("health is %q, want %q", lines, texts)
	}
}

func TestContextsOfAFileAreClusters(t *testing.T) {
	inFolder(t, KubeconfigOptions{}, func(w *folder) string {
		w.put("config", kubeconfigOf("eu", "1", "us", "2"))
		return "config"
	}, func(w *folder) {
		w.wants("join eu; join us; synced")
		w.put("config", kubeconfigOf("eu", "1", "us", "2")) // the same content in another form
		w.wants("")
		w.put("config", kubeconfigOf("eu", "1", "us", "9", "ap", "3"))
		w.wants("join ap; change us: identity, host")
		w.put("config", kubeconfigOf("ap", "3"))
		w.wants("leave eu; leave us")
		w.wantsHealth()
	})
}

func TestMalformedFileKeepsItsClusters(t *testing.T) {
	inFolder(t, KubeconfigOptions{}, func(w *folder) string {
		w.put("config", kubeconfigOf("eu", "1", "us", "2"))
		return "config"
	}, func(w *folder) {
		w.wants("join eu; join us; synced")
		for text, want := range map[string]string{
			"{{{": "not a kubeconfig", "": "it is empty", "kind: Pod": "not a kubeconfig",
		} {
			w.put("config", text)
			w.wants("")
			w.wantsHealth("config: " + want)
			w.wants("")
		}
		w.remove("config")
		w.wants("")
		w.wantsHealth("config: stat: no such file")
		w.put("config", kubeconfigOf("us", "2"))
		w.wants("leave eu")
		w.wantsHealth()
		if n := strings.Count(w.log.String(), "Cannot read all clusters of a source"); n != 4 {
			w.t.Errorf("four faults were logged %d times:\n%s", n, &w.log)
		}
	})
}

// An invalid context does not affect the others, and its cluster stays as it was.
func TestMalformedContextKeepsItsCluster(t *testing.T) {
	inFolder(t, KubeconfigOptions{}, func(w *folder) string {
		w.put("config", kubeconfigOf("eu", "1", "us", "2"))
		return "config"
	}, func(w *folder) {
		w.wants("join eu; join us; synced")
		broken := strings.Replace(kubeconfigOf("eu", "1", "us", "3"), `cluster: "eu", user: u`,
			`cluster: "eu", user: nobody`, 1)
		w.put("config", broken)
		w.wants("change us: identity, host")
		w.wantsHealth(`context "eu"`)
	})
}

func TestFilesOfADirectoryAreClusters(t *testing.T) {
	inFolder(t, KubeconfigOptions{}, func(w *folder) string {
		w.put("d/eu.yaml", kubeconfigOf("x", "1", "not-current", "7"))
		w.put("d/us.kubeconfig", kubeconfigOf("x", "2"))
		w.put("d/.hidden", kubeconfigOf("x", "2"))
		w.must(os.MkdirAll(filepath.Join(w.dir, "d/folder"), 0o755))
		return "d"
	}, func(w *folder) {
		w.wants("join eu; join us; synced")
		w.put("d/ap.yaml", kubeconfigOf("x", "3"))
		w.wants("join ap")
		w.put("d/eu.yaml", kubeconfigOf("x", "9"))
		w.wants("change eu: identity, host")
		w.put("d/us.kubeconfig", "{{{")
		w.remove("d/ap.yaml")
		w.wants("leave ap")
		w.wantsHealth("d/us.kubeconfig: not a kubeconfig")
		w.remove("d/us.kubeconfig")
		w.wants("leave us")
		w.wantsHealth()
		w.put("d/eu.yaml", strings.Replace(kubeconfigOf("x", "9"), `current-context: "x"`, "current-context: nowhere", 1))
		w.wants("")
		w.wantsHealth(`its current context "nowhere" does not exist`)
	})
}

func TestUnreadableDirectoryKeepsItsClusters(t *testing.T) {
	inFolder(t, KubeconfigOptions{}, func(w *folder) string {
		w.put("d/eu.yaml", kubeconfigOf("x", "1"))
		return "d"
	}, func(w *folder) {
		w.wants("join eu; synced")
		w.must(os.Rename(filepath.Join(w.dir, "d"), filepath.Join(w.dir, "away")))
		w.wants("")
		w.wantsHealth("d: stat: no such file")
		w.must(os.Rename(filepath.Join(w.dir, "away"), filepath.Join(w.dir, "d")))
		w.wants("")
		w.wantsHealth()
	})
}

func TestFileAppearsLater(t *testing.T) {
	inFolder(t, KubeconfigOptions{}, func(*folder) string { return "d" }, func(w *folder) {
		w.wants("synced")
		w.wantsHealth("d: stat: no such file")
		w.put("d/eu.yaml", kubeconfigOf("x", "1"))
		w.wants("join eu")
		w.wantsHealth()
	})
}

// The kubelet writes a mounted volume into a new folder, and then makes the link ..data point to that folder. So all
// files change at once.
//
// Source: AtomicWriter of Kubernetes v1.37, pkg/volume/util.
func TestMountedSecret(t *testing.T) {
	inFolder(t, KubeconfigOptions{}, func(w *folder) string {
		w.put("d/..2026_1/eu.yaml", kubeconfigOf("x", "1"))
		w.must(os.Symlink("..2026_1", filepath.Join(w.dir, "d/..data")))
		w.must(os.Symlink("..data/eu.yaml", filepath.Join(w.dir, "d/eu.yaml")))
		return "d"
	}, func(w *folder) {
		w.wants("join eu; synced")
		w.put("d/..2026_2/eu.yaml", kubeconfigOf("x", "2")) // has the same size, and perhaps the same time stamp
		w.put("d/..2026_2/us.yaml", kubeconfigOf("x", "3"))
		w.must(os.Symlink("..2026_2", filepath.Join(w.dir, "d/..data_tmp")))
		w.must(os.Rename(filepath.Join(w.dir, "d/..data_tmp"), filepath.Join(w.dir, "d/..data")))
		w.must(os.Symlink("..data/us.yaml", filepath.Join(w.dir, "d/us.yaml")))
		w.must(os.RemoveAll(filepath.Join(w.dir, "d/..2026_1")))
		w.wants("change eu: identity, host; join us")
		w.remove("d/us.yaml")
		w.wants("leave us")
		w.wantsHealth()
	})
}

// While a program writes a file in place, the file is too short for a while, but may be a valid kubeconfig.
func TestAHalfWrittenFileIsNotRead(t *testing.T) {
	inFolder(t, KubeconfigOptions{}, func(w *folder) string {
		w.put("config", kubeconfigOf("eu", "1", "us", "2"))
		return "config"
	}, func(w *folder) {
		w.wants("join eu; join us; synced")
		path := filepath.Join(w.dir, "config")
		w.must(os.WriteFile(path, []byte(kubeconfigOf("eu", "1")), 0o600))
		time.Sleep(time.Second) // one check
		w.must(os.WriteFile(path, []byte(kubeconfigOf("eu", "1", "us", "2", "ap", "3")), 0o600))
		w.wants("join ap")
		w.wantsHealth()
	})
}

func TestNamesAndLabels(t *testing.T) {
	o := KubeconfigOptions{
		EveryContext: true,
		Labels: func(file, context string) map[string]string {
			return map[string]string{"file": file, "context": context}
		},
	}
	inFolder(t, o, func(w *folder) string {
		w.put("d/eu.yaml", kubeconfigOf("Admin@1", "1", "admin:1", "2", "b", "3"))
		w.put("d/us.yaml", kubeconfigOf("b", "4"))
		return "d"
	}, func(w *folder) {
		w.wants("join eu/admin-1; join eu/b; join us/b; synced")
		w.wantsHealth(`two clusters are named "eu/admin-1"`)
		a, err := w.fleet.Cluster("eu/b")
		w.must(err)
		if a.Labels["file"] != "eu" || a.Labels["context"] != "b" {
			w.t.Errorf("labels are %v", a.Labels)
		}
	})
	o = KubeconfigOptions{Name: func(_, context string) string { return strings.TrimPrefix(context, "skip") }}
	inFolder(t, o, func(w *folder) string {
		w.put("config", kubeconfigOf("skip", "1", "b", "3"))
		return "config"
	}, func(w *folder) { w.wants("join b; synced") })
}
