// Loop measures controllers on Flyball and on controller-runtime, in turns, each a program of its own that it builds,
// against an API server in another process. It prints tables, and writes them into a page with -page.
//
//	go run ./bench/loop/cmd/loop -page ../docs/performance.md
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/docblock"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/peers/bench/loop"
	"github.com/flyball-dev/flyball/peers/bench/turns"
)

// stormRate is the number of writes a second in a storm.
const stormRate = 1000

var (
	number  = flag.Int("turns", 6, "how often to measure each system")
	scale   = flag.Float64("scale", 1, "factor of the numbers of objects, for a quick look")
	only    = flag.String("only", "", "measure the works whose title this regular expression matches")
	page    = flag.String("page", "", "write the tables into this page")
	serve   = flag.Int("serve", -1, "be the API server, with that many ConfigMaps (used by the command itself)")
	profile = flag.String("profile", "", "write CPU and memory profiles of each process, with this prefix")
)

func main() {
	flag.Parse()
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt)
	defer release()
	var err error
	switch {
	case flag.NArg() > 0:
		err = fmt.Errorf("unknown argument %q", flag.Arg(0))
	case *number < 1 || *scale <= 0:
		err = errors.New("-turns and -scale must be positive")
	case *serve >= 0:
		err = beServer(ctx, *serve)
	default:
		err = compare(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "loop:", err)
		os.Exit(1)
	}
}

// beServer serves until it is stopped. The first line it prints is its address.
func beServer(ctx context.Context, objects int) error {
	s, err := localapi.New(localapi.Options{})
	if err != nil {
		return err
	}
	var all []apiruntime.Object
	for n := range objects {
		all = append(all, loop.Object(n))
	}
	marker := loop.Object(0)
	marker.Name = loop.Marker
	if objects == 0 {
		all = append(all, marker)
	}
	if err := s.Seed(ctx, all...); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	return s.Serve(ctx, l)
}

// compare measures all plans and prints a table of each as soon as it is complete.
func compare(ctx context.Context) error {
	chosen, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	head, err := turns.Head(*number)
	if err != nil {
		return err
	}
	programs, err := build(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(programs)
	head += "The last column is Flyball's median divided by controller-runtime's.\n"
	fmt.Println(head)
	tables := []string{head}
	for _, p := range loop.Plans(*scale) {
		if !chosen.MatchString(fmt.Sprintf(p.Title, p.Objects, p.Workers)) {
			continue
		}
		table, err := measure(ctx, programs, p)
		if err != nil {
			return err
		}
		fmt.Printf("\n%s", table)
		tables = append(tables, table)
	}
	if *page == "" {
		return nil
	}
	return docblock.Write(*page, "make bench-loop", strings.Join(tables, "\n"))
}

// build builds the programs into a new folder.
func build(ctx context.Context) (folder string, err error) {
	if folder, err = os.MkdirTemp("", "loop"); err != nil {
		return "", err
	}
	args := []string{"build", "-o", folder + "/"}
	for _, p := range loop.Programs {
		args = append(args, "github.com/flyball-dev/flyball/peers/bench/loop/cmd/"+p.Folder)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", errors.Join(fmt.Errorf("build the programs: %w", err), os.RemoveAll(folder))
	}
	return folder, nil
}

// measure runs all programs in turns against one server.
func measure(ctx context.Context, programs string, p loop.Plan) (table string, err error) {
	objects := p.Objects
	if p.Kind == loop.Storm || p.Kind == loop.Feed {
		objects = 0
	}
	s := exec.CommandContext(ctx, os.Args[0], "-serve", strconv.Itoa(objects))
	s.Stderr = os.Stderr
	pipe, err := s.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := s.Start(); err != nil {
		return "", err
	}
	defer func() { _ = s.Process.Kill(); _ = s.Wait() }()
	var address string
	if _, err := fmt.Fscanln(pipe, &address); err != nil {
		return "", fmt.Errorf("the API server: %w", err)
	}
	results := make([][]*loop.Result, len(loop.Programs))
	for turn := range *number {
		for i, program := range loop.Programs {
			w := p.Work
			w.Turn = turn*len(loop.Programs) + i
			r, err := run(ctx, filepath.Join(programs, program.Folder), w, address)
			if err != nil {
				return "", fmt.Errorf("%s: %w", program.System, err)
			}
			results[i] = append(results[i], r)
		}
	}
	return p.Table(results), nil
}

// run runs one of the programs.
func run(ctx context.Context, program string, w loop.Work, address string) (*loop.Result, error) {
	text, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	c, err := kubernetes.NewForConfig(&rest.Config{Host: address, QPS: -1})
	if err != nil {
		return nil, err
	}
	if w.Kind == loop.Storm {
		if err := mark(ctx, c, ""); err != nil {
			return nil, err
		}
	}
	prefix := *profile
	if prefix != "" {
		prefix += "-" + filepath.Base(program)
	}
	cmd := exec.CommandContext(ctx, program, "-work", string(text), "-server", address, "-profile", prefix)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := &loop.Result{}
	err = func() error {
		lines := bufio.NewReader(pipe)
		if w.Kind == loop.Storm {
			if err := awaitReady(lines); err != nil {
				return err
			}
			if err := runStorm(ctx, c, w.Objects, w.Turn, stormRate); err != nil {
				return err
			}
		}
		return json.NewDecoder(lines).Decode(r)
	}()
	if err != nil {
		_ = cmd.Process.Kill()
	}
	return r, errors.Join(err, cmd.Wait())
}
