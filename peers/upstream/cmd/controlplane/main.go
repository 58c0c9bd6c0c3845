// Command controlplane runs etcd, kube-apiserver and, if asked, kube-controller-manager on loopback until Ctrl-C.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/flyball-dev/flyball/peers/upstream"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func run() error {
	controllers := flag.String("controllers", "",
		"run kube-controller-manager with these controllers, comma-separated; empty: do not run it")
	mode := flag.String("authorization-mode", "",
		"kube-apiserver's flag, RBAC for example; empty: everybody may do everything")
	build := flag.Bool("build", false,
		"build the binaries, or those that the arguments name, print the folder that holds them, and start nothing")
	flag.Parse()
	if flag.NArg() > 0 && !*build {
		return fmt.Errorf("unexpected argument %q; the flags are listed by -help", flag.Arg(0))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *build {
		dir, err := upstream.Build(ctx, os.Stderr, flag.Args()...)
		if err == nil {
			fmt.Println(dir)
		}
		return err
	}
	o := upstream.Options{Log: os.Stderr, AuthorizationMode: *mode}
	if *controllers != "" {
		o.Controllers = strings.Split(*controllers, ",")
	}
	cp, err := upstream.Start(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("\nexport KUBECONFIG=%s\n\nCtrl-C stops it; logs are in %s\n", cp.Kubeconfig, cp.Dir)
	<-ctx.Done()
	stop()
	fmt.Fprintln(os.Stderr, "stopping")
	return cp.Stop()
}
