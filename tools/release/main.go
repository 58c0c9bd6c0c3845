// Release cuts a release of the modules that programs require: the root of the repository and those in interop.
//
//	release v0.1.0    sets the versions, commits them, and makes the tags; it pushes nothing
//	release -describe DIR    writes checksums and bills of materials of the programs in a folder
//	release -check    cuts a release in a clone and uses it from modules elsewhere, as its users would
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"
)

func main() {
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: release VERSION | release -describe DIR | release -check [-keep]")
		flag.PrintDefaults()
	}
	checking := flag.Bool("check", false, "cut a release in a clone and use it")
	programs := flag.String("describe", "", "a folder: write checksums and bills of materials of the programs in it")
	keep := flag.Bool("keep", false, "with -check: keep the folder with the clone and the modules that use it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case *programs != "" && flag.NArg() == 0:
		err = describe(*programs)
	case *checking && flag.NArg() == 0:
		err = check(ctx, *keep)
	case !*checking && flag.NArg() == 1:
		if err = cut(ctx, repository{dir: "."}, flag.Arg(0), time.Now()); err == nil {
			fmt.Printf("\nNothing was pushed. To publish: git push --follow-tags\nTo undo: %s\n", undo(flag.Arg(0)))
		}
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func undo(version string) string {
	return "git tag -d " + strings.Join(tags(version), " ") + " && git reset --hard HEAD~"
}

// run runs a command in a folder, and returns what it prints to standard output. The error has the rest.
func run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	var errs strings.Builder
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env, c.Stderr = dir, append(os.Environ(), env...), &errs
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out, errs.String())
	}
	return strings.TrimSpace(string(out)), nil
}
