// Command run runs the controller of chapter 13 against a server, until it is interrupted.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	capstone "github.com/flyball-dev/flyball/exercises/13-capstone"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "the kubeconfig of the cluster")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		fail(err)
	}
	config.UserAgent = "capstone"
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		fail(err)
	}
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c := capstone.New(h, host.Scheme+"://"+host.Host)
	c.Log, c.Random = func(line string) { fmt.Println(line) }, rand.Float64
	c.Run(ctx)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "capstone:", err)
	os.Exit(1)
}
