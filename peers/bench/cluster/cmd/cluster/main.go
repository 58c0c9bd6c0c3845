// Cluster measures kube-controller-manager's controllers, and operators on controller-runtime, beside Flyball's:
// in turns, each in a process of its own, on a new etcd and kube-apiserver each time. It prints tables, and writes
// them into a page with -page.
//
//	go run ./bench/cluster/cmd/cluster -page ../docs/performance.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flyball-dev/flyball/internal/docblock"
	"github.com/flyball-dev/flyball/localapi/kubelet"
	"github.com/flyball-dev/flyball/peers/bench/cluster"
	"github.com/flyball-dev/flyball/peers/bench/loop"
	"github.com/flyball-dev/flyball/peers/bench/turns"
	"github.com/flyball-dev/flyball/peers/upstream"
)

var (
	number = flag.Int("turns", 5, "how often to measure each system")
	scale  = flag.Float64("scale", 1, "factor of the numbers of objects, for a quick look")
	load   = flag.String("load", "", "measure only this load: deployments or widgets")
	page   = flag.String("page", "", "write the tables into this page")
	be     = flag.String("be", "", "be that process (used by the command itself)")
)

func main() {
	flag.Parse()
	ctrl.SetLogger(klog.Background()) // Else controller-runtime's client complains.
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer release()
	loads := cluster.Loads(*scale)
	loads = slices.DeleteFunc(loads, func(l cluster.Load) bool { return *load != "" && l.Name != *load })
	var err error
	switch {
	case flag.NArg() > 0 || len(loads) == 0:
		err = errors.New("there are no arguments, and -load is deployments or widgets")
	case *number < 1 || *scale <= 0:
		err = errors.New("-turns and -scale must be positive")
	case *page != "" && (*scale != 1 || *load != ""):
		err = errors.New("a page needs all loads at full size")
	case *be != "":
		err = beProcess(ctx, &loads[0])
	default:
		err = compare(ctx, loads)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func beProcess(ctx context.Context, l *cluster.Load) error {
	config, err := cluster.Config(flag.Lookup("kubeconfig").Value.String()) // The flag is controller-runtime's.
	if err != nil {
		return err
	}
	switch *be {
	case "kubelet":
		return cluster.RunKubelet(ctx, config, kubelet.Options{PodsPerNode: 10_000})
	case "watcher":
		return cluster.RunWatcher(ctx, config, l, os.Stdout)
	default:
		return fmt.Errorf("there is no process %q", *be)
	}
}

// compare measures the loads, and prints a table of each as soon as it is complete.
func compare(ctx context.Context, loads []cluster.Load) error {
	dir, err := os.MkdirTemp("", "flyball-cluster-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	programs, err := build(ctx, dir)
	if err != nil {
		return err
	}
	head, err := turns.Head(*number)
	if err != nil {
		return err
	}
	head += "The last column is the last system's median divided by the first's.\n"
	fmt.Println(head)
	tables := []string{head}
	for _, l := range loads {
		results := make([][]*cluster.Result, len(l.Systems))
		for turn := range *number {
			for i, s := range l.Systems {
				begin := time.Now()
				r, err := l.Turn(ctx, s, programs)
				if err != nil {
					return fmt.Errorf("%s: %w", s.Name, err)
				}
				fmt.Fprintf(os.Stderr, "%s, turn %d, %s: %.0f s\n", l.Name, turn+1, s.Name, time.Since(begin).Seconds())
				results[i] = append(results[i], r)
			}
		}
		tables = append(tables, l.Table(results))
		fmt.Printf("\n%s", tables[len(tables)-1])
	}
	if *page == "" {
		return nil
	}
	return docblock.Write(*page, "make bench-cluster", strings.Join(tables, "\n"))
}

// build builds what is measured. The command runs in the folder of module peers.
func build(ctx context.Context, dir string) (cluster.Programs, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	upstreams, err := upstream.Build(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	const manager = "kube-controller-manager"
	p := cluster.Programs{
		"self": self, "flyball": filepath.Join(dir, "flyball"), manager: filepath.Join(upstreams, manager),
	}
	var operators []string
	for _, program := range loop.Programs {
		p[program.Folder] = filepath.Join(dir, program.Folder)
		operators = append(operators, "./bench/loop/cmd/"+program.Folder)
	}
	return p, errors.Join(goBuild(ctx, dir, "..", "./cmd/flyball"), goBuild(ctx, dir, ".", operators...))
}

// goBuild builds packages of the module in a folder into dir.
func goBuild(ctx context.Context, dir, module string, packages ...string) error {
	args := append([]string{"build", "-ldflags", "-s -w", "-o", dir + "/"}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = module, os.Stderr
	return cmd.Run()
}
