package comingfrom

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/localapi"
)

const page = "c-coming-from"

// TestComingFromGreeters: both programs do the same. The table says how many lines of Go each is.
func TestComingFromGreeters(t *testing.T) {
	table := "| | lines | what they are |\n|---|---|---|\n"
	lines := []int{}
	for _, p := range []struct {
		name, file, about string
		run               func(ctx context.Context, api *localapi.Test) error
	}{
		{
			"client-go", "clientgo_test.go", "a handler, a queue, a worker, `processNextWorkItem`, and the work",
			func(ctx context.Context, api *localapi.Test) error {
				return runClientGo(ctx, kubernetes.NewForConfigOrDie(api.RESTConfig()))
			},
		},
		{
			"Flyball", "greeter_test.go", "the work",
			func(ctx context.Context, api *localapi.Test) error { return runFlyball(ctx, api.RESTConfig()) },
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			api := localapi.NewTest(t)
			ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
			done := make(chan error, 1)
			go func() { done <- p.run(ctx, api) }()
			time.Sleep(time.Second)
			maps := kubernetes.NewForConfigOrDie(api.RESTConfig()).CoreV1().ConfigMaps("default")
			for name, greet := range map[string]string{"asks": "yes", "silent": "no"} {
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
					Name: name, Labels: map[string]string{"greet": greet},
				}}
				if _, err := maps.Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Minute)
			for name, want := range map[string]string{"asks": "hello", "silent": ""} {
				cm, err := maps.Get(t.Context(), name, metav1.GetOptions{})
				if err != nil || cm.Data["greeting"] != want {
					t.Errorf("%s: %s has %q, %v", p.name, name, cm.Data["greeting"], err)
				}
			}
			stop()
			if err := <-done; err != nil {
				t.Errorf("%s: %v", p.name, err)
			}
		})
		n := count(t, p.file)
		lines = append(lines, n)
		table += fmt.Sprintf("| %s | %d | %s |\n", p.name, n, p.about)
	}
	if lines[0] < 2*lines[1] {
		t.Errorf("lines %v", lines)
	}
	book.Block(t, page, table)
}

// count counts the lines of a file without imports, comments and empty lines.
func count(t *testing.T, file string) (n int) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			last = set.Position(g.End()).Line
		}
	}
	for i, line := range bytes.Split(code, []byte("\n")) {
		text := bytes.TrimSpace(line)
		if i >= last && len(text) > 0 && !bytes.HasPrefix(text, []byte("//")) {
			n++
		}
	}
	return n
}

// A row is a stage of the pipeline and what it is called. A name is a file or package, a colon, and what it declares.
type row struct{ stage, clientGo, controllerRuntime, ours, chapter string }

var rows = []row{
	{
		"list and watch", "tools/cache/listwatch.go:ListerWatcher",
		"",
		"informer/listwatch:ListerWatcher", "2",
	},
	{
		"reflector", "tools/cache/reflector.go:Reflector",
		"",
		"informer/reflector:Reflector", "3",
	},
	{
		"deltas in order", "tools/cache/the_real_fifo.go:RealFIFO",
		"",
		"informer/deltafifo:DeltaFIFO", "4",
	},
	{
		"cache with indexes", "tools/cache/index.go:Indexer",
		"pkg/client/interfaces.go:FieldIndexer",
		"informer/indexer:Indexer", "5",
	},
	{
		"informer", "tools/cache/shared_informer.go:SharedIndexInformer",
		"",
		"informer:Informer", "6",
	},
	{
		"all informers of a process", "informers/factory.go:SharedInformerFactory",
		"pkg/cache/cache.go:Cache",
		"informer:Factory", "6",
	},
	{
		"event handler", "tools/cache/controller.go:ResourceEventHandler",
		"pkg/handler/eventhandler.go:EventHandler",
		"reconcile/handler:EventHandler", "6",
	},
	{
		"read from the cache", "tools/cache/listers.go:GenericLister",
		"pkg/client/interfaces.go:Reader",
		"client:Reader", "6",
	},
	{
		"work queue", "util/workqueue/rate_limiting_queue.go:TypedRateLimitingInterface",
		"pkg/controller/priorityqueue/priorityqueue.go:PriorityQueue",
		"workqueue:Queue", "7",
	},
	{
		"rate limiter", "util/workqueue/default_rate_limiters.go:TypedRateLimiter",
		"",
		"workqueue:RateLimiter", "7",
	},
	{
		"loop", "",
		"pkg/controller/controller.go:Controller",
		"reconcile:Controller", "8",
	},
	{
		"the work", "",
		"pkg/reconcile/reconcile.go:Reconciler",
		"reconcile:Reconciler", "8",
	},
	{
		"own writes", "tools/cache/mutation_cache.go:MutationCache",
		"pkg/client/client.go:EnableReadYourWritesConsistency",
		"client:Cluster", "9",
	},
	{
		"process", "",
		"pkg/manager/manager.go:Manager",
		"manager:Manager", "12",
	},
	{
		"leader election", "tools/leaderelection/leaderelection.go:LeaderElector",
		"pkg/manager/manager.go:LeaderElectionID",
		"manager/leader:Elector", "12",
	},
	{
		"tests without a cluster", "testing/fixture.go:ObjectTracker",
		"pkg/envtest/server.go:Environment",
		"localapi:NewTest", "A",
	},
}

// TestComingFromNames: each name of the table exists where the table says.
func TestComingFromNames(t *testing.T) {
	clientGo := module(t, ".", "k8s.io/client-go")
	controllerRuntime := module(t, filepath.Join("..", "..", "..", "..", "interop", "controllerruntime"),
		"sigs.k8s.io/controller-runtime")
	table := "| stage | client-go | controller-runtime | Flyball | chapter |\n|---|---|---|---|---|\n"
	for _, r := range rows {
		for dir, name := range map[string]string{clientGo: r.clientGo, controllerRuntime: r.controllerRuntime} {
			if file, declared, ok := strings.Cut(name, ":"); ok && !declares(t, filepath.Join(dir, file), declared) {
				t.Errorf("%s does not declare %s", file, declared)
			}
		}
		folder, declared, _ := strings.Cut(r.ours, ":")
		api := filepath.Join("..", "..", "..", "api", strings.ReplaceAll(folder, "/", ".")+".txt")
		if list, err := os.ReadFile(api); err != nil || !strings.Contains(string(list), "type "+declared) &&
			!strings.Contains(string(list), "func "+declared) {
			t.Errorf("%s has no %s: %v", folder, declared, err)
		}
		table += fmt.Sprintf("| %s | %s | %s | %s | %s |\n", r.stage, theirs(r.clientGo, "you write it"),
			theirs(r.controllerRuntime, "client-go's"), theirs(r.ours, ""), r.chapter)
	}
	book.Block(t, page, table)
}

// theirs is a cell of the table.
func theirs(name, none string) string {
	file, declared, ok := strings.Cut(name, ":")
	if !ok {
		return none
	}
	return fmt.Sprintf("`%s` in `%s`", declared, file)
}

// module returns the folder of a module that the module in dir requires.
func module(t *testing.T, dir, path string) string {
	t.Helper()
	for _, args := range [][]string{{"mod", "download", path}, {"list", "-m", "-f", "{{.Dir}}", path}} {
		c := exec.Command("go", args...)
		c.Dir = dir
		out, err := c.Output()
		if err != nil {
			t.Fatalf("go %s in %s: %v", strings.Join(args, " "), dir, err)
		}
		if args[0] == "list" {
			return strings.TrimSpace(string(out))
		}
	}
	return ""
}

// declares reports whether a file declares a type or a field of that name.
func declares(t *testing.T, file, name string) bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return false
	}
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			found = found || n.Name.Name == name
		case *ast.Field:
			for _, field := range n.Names {
				found = found || field.Name == name
			}
		}
		return !found
	})
	return found
}
