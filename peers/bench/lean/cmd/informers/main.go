// Informers measures Flyball's informer beside client-go's and controller-runtime's, each in a process of its own, on
// objects that a replay server in another sends over HTTP. It prints tables, and writes the results as JSON and
// charts as SVG.
//
//	go run ./bench/lean/cmd/informers -objects 100000 -rates 1000,10000 -seconds 60 -out ../docs/images
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/flyball-dev/flyball/peers/bench/lean"
)

var (
	objects  = flag.String("objects", "100000", "numbers of objects, separated by commas")
	resource = flag.String("resources", "pods,workloads", "what to list")
	systems  = flag.String("systems", "clientgo,controllerruntime,flyball,flyball-standard,flyball-stream",
		"what to compare")
	handlers = flag.String("handlers", "1", "numbers of handlers")
	rates    = flag.String("rates", "", "updates a second, separated by commas")
	seconds  = flag.Int("seconds", 10, "how long to update at each rate")
	relist   = flag.Bool("relist", true, "list again after a 410")
	most     = flag.Int("relist-most", 100_000,
		"the most objects that are listed again: client-go then holds two and a half times what it caches")
	rounds = flag.Int("rounds", 1,
		"how often to measure, the systems in turns; the round of least processor time counts")
	data    = flag.String("data", filepath.Join(os.TempDir(), "flyball-replay"), "where generated objects are kept")
	out     = flag.String("out", "", "folder for informer-results.json and charts; none are written without")
	again   = flag.Bool("add", false, "add to the results that the folder of -out has")
	serve   = flag.String("serve", "", "be the server of that resource (used by the command itself)")
	measure = flag.String("measure", "", "measure the plan in that JSON (used by the command itself)")
)

func main() {
	flag.Parse()
	var err error
	switch {
	case *serve != "":
		err = beServer()
	case *measure != "":
		err = beSystem()
	default:
		err = compare()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "informers:", err)
		os.Exit(1)
	}
}

// beServer serves until it is killed. The first line it prints is its address.
func beServer() error {
	n, err := strconv.Atoi(*objects)
	if err != nil {
		return err
	}
	return lean.Serve(*serve, *data, n, os.Stdout)
}

func beSystem() error {
	var p lean.Plan
	if err := json.Unmarshal([]byte(*measure), &p); err != nil {
		return err
	}
	r, err := lean.Measure(context.Background(), p)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

func compare() error {
	var all []*lean.Result
	if *again {
		var err error
		if all, err = lean.Read(*out); err != nil {
			return fmt.Errorf("-add: %w", err)
		}
	}
	for _, r := range strings.Split(*resource, ",") {
		for _, n := range numbers(*objects) {
			results, err := compareAt(r, n)
			if err != nil {
				lean.Print(os.Stdout, all) // Hours of measuring are not lost.
				return err
			}
			all = append(all, results...)
			if *out != "" {
				if err := lean.Write(*out, all); err != nil {
					return err
				}
			}
		}
	}
	lean.Print(os.Stdout, all)
	return nil
}

// compareAt measures all systems in turns against one server.
func compareAt(resource string, n int) ([]*lean.Result, error) {
	server, address, err := startServer(resource, n)
	if err != nil {
		return nil, err
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	var best []*lean.Result
	for round := range *rounds {
		at := 0
		for _, h := range numbers(*handlers) {
			for _, s := range strings.Split(*systems, ",") {
				r, err := run(
					lean.Plan{
						System: s, Resource: resource, Server: address, Objects: n, Handlers: h,
						Rates: numbers(*rates), Seconds: *seconds, Relist: *relist && n <= *most,
					},
				)
				if err != nil {
					return nil, err
				}
				fmt.Fprintf(os.Stderr, "%d %s, %d handlers, %s: %.1f s, %.1f s of processor time\n", n, resource, h, s,
					r.SyncWall, r.SyncCPU)
				if round == 0 {
					best = append(best, r)
				} else if r.SyncCPU < best[at].SyncCPU {
					best[at] = r
				}
				at++
			}
		}
	}
	return best, nil
}

func startServer(resource string, n int) (*exec.Cmd, string, error) {
	cmd := exec.Command(os.Args[0], "-serve", resource, "-objects", strconv.Itoa(n), "-data", *data)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	var address string
	_, err = fmt.Fscanln(pipe, &address)
	return cmd, address, err
}

// run measures one system in a process of its own.
func run(p lean.Plan) (*lean.Result, error) {
	plan, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(os.Args[0], "-measure", string(plan))
	cmd.Stderr = os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.System, err)
	}
	r := &lean.Result{}
	return r, json.Unmarshal(answer, r)
}

func numbers(list string) (all []int) {
	for _, s := range strings.Split(list, ",") {
		if n, err := strconv.Atoi(s); err == nil {
			all = append(all, n)
		}
	}
	return all
}
