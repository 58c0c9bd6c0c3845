// Parts measures Flyball's parts and those that they replace: the benchmarks of package bench. It builds them once, and
// runs each system in a process of its own, in turns, with the collector on. It prints a table for each benchmark, and
// writes the tables into a page with -page.
//
//	go run ./bench/cmd/parts -only Queue -page ../docs/performance.md
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/perf/benchfmt"

	"github.com/flyball-dev/flyball/internal/docblock"
	"github.com/flyball-dev/flyball/peers/bench/turns"
)

var (
	number = flag.Int("turns", 6, "how often to measure each system")
	only   = flag.String("only", "", "measure the benchmarks whose names this regular expression matches")
	short  = flag.Bool("short", false, "run each benchmark for a moment only, to see that it works")
	page   = flag.String("page", "", "write the tables into this page")
)

// pkg has the benchmarks. One of them is in its subpackage lean.
const pkg = "github.com/flyball-dev/flyball/peers/bench"

func main() {
	flag.Parse()
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt)
	defer release()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "parts:", err)
		os.Exit(1)
	}
}

// run measures the chosen benchmarks, and writes each table as soon as it is complete.
func run(ctx context.Context) error {
	chosen, err := regexp.Compile(*only)
	switch {
	case err != nil:
		return err
	case flag.NArg() > 0 || *number < 1:
		return errors.New("-turns must be positive, and there are no arguments")
	case *short && *page != "":
		return errors.New("the figures of a short run do not belong on a page")
	}
	dir, err := os.MkdirTemp("", "parts")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", dir, pkg, pkg+"/lean")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the benchmarks: %w\n%s", err, out)
	}
	head, err := turns.Head(*number)
	if err != nil {
		return err
	}
	for _, t := range tables {
		if !chosen.MatchString(t.benchmark) {
			continue
		}
		var all results
		for range *number {
			for _, system := range t.systems {
				if err := t.measure(ctx, filepath.Join(dir, t.binary()), system, &all); err != nil {
					return fmt.Errorf("%s, %s: %w", t.benchmark, system, err)
				}
			}
		}
		text := head + "\n" + t.text(&all)
		fmt.Printf("## %s\n\n%s\n", t.benchmark, text)
		if *page == "" {
			continue
		}
		if err := docblock.Write(*page, "make bench BENCH="+t.benchmark, text); err != nil {
			return err
		}
	}
	return nil
}

// measure runs the benchmarks of one system in a process.
func (t table) measure(ctx context.Context, binary, system string, all *results) error {
	name := regexp.QuoteMeta(strings.ReplaceAll(system, " ", "_"))
	benchtime := t.benchtime
	if *short {
		benchtime = "1x"
	}
	c := exec.CommandContext(ctx, binary, "-test.run", "^$", "-test.bench", "^Benchmark"+t.benchmark+"$/./^"+name+"$",
		"-test.benchtime", benchtime, "-test.benchmem", "-test.timeout", "0")
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	found := false
	for r := benchfmt.NewReader(bytes.NewReader(out), system); r.Scan(); {
		switch record := r.Result().(type) {
		case *benchfmt.Result:
			found = true
			all.add(record, system)
		case *benchfmt.SyntaxError:
			return record
		}
	}
	if !found {
		return errors.New("there is no such benchmark")
	}
	return nil
}
