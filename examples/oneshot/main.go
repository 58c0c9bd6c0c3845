package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/storage/pebble"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

//go:embed examples.flyball.dev_folders.yaml
var definition []byte

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oneshot:", err)
		os.Exit(1)
	}
}

const usage = "usage: oneshot [-store DIR] add NAME PATH | check"

// run is main with its environment passed in.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("oneshot", flag.ContinueOnError)
	store := flags.String("store", ".oneshot", "where the digests are kept")
	timeout := flags.Duration("timeout", time.Minute, "how long it may take")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(klog.NewContext(ctx, klog.Logger{}), *timeout)
	defer cancel()
	switch args = flags.Args(); {
	case len(args) == 3 && args[0] == "add":
		return withStore(ctx, *store, out, func(c client.Client) error { return add(ctx, c, args[1], args[2]) })
	case len(args) == 1 && args[0] == "check":
		return withStore(ctx, *store, out, func(c client.Client) error { return check(ctx, c) })
	}
	return errors.New(usage)
}

// withStore is the whole run: open the store, let want write the desired state, run the controllers until they are
// idle, and print the result.
func withStore(ctx context.Context, dir string, out io.Writer, want func(client.Client) error) (err error) {
	store, err := pebble.Open(ctx, dir, pebble.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	server, err := localapi.New(localapi.Options{Storage: store})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	mgr, err := newManager(server.RESTConfig())
	if err != nil {
		return err
	}
	// Without caches: the manager does not run yet.
	direct, err := client.New(server.RESTConfig(), client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return err
	}
	if err := errors.Join(define(ctx, direct), want(direct)); err != nil {
		return err
	}
	summary, err := mgr.RunUntilIdle(ctx, manager.IdleOptions{Retries: 2})
	return errors.Join(err, tell(context.WithoutCancel(ctx), direct, out, summary))
}

// newManager returns a manager that runs the controller.
func newManager(config *rest.Config) (*ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	addToScheme(scheme)
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return mgr, (&Reconciler{mgr.GetClient()}).SetupWithManager(mgr)
}

// define creates the resource definition on the first run.
func define(ctx context.Context, c client.Client) error {
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(definition, &crd.Object); err != nil {
		return err
	}
	return client.IgnoreAlreadyExists(c.Create(ctx, crd))
}

func add(ctx context.Context, c client.Client, name, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	return c.Create(ctx, &Folder{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       FolderSpec{Path: path, Round: 1},
	})
}

// check requests a new round for all folders.
func check(ctx context.Context, c client.Client) error {
	var folders FolderList
	if err := c.List(ctx, &folders); err != nil {
		return err
	}
	for _, f := range folders.Items {
		f.Spec.Round++
		if err := c.Update(ctx, &f); err != nil {
			return err
		}
	}
	return nil
}

// tell prints the results.
func tell(ctx context.Context, c client.Client, out io.Writer, summary manager.Summary) error {
	var folders FolderList
	if err := c.List(ctx, &folders); err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tFILES\tDIGEST\tROUND\tSTEP\tCHANGED")
	for _, f := range folders.Items {
		s := f.Status
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%s\t%t\n", f.Name, s.Files, s.Digest, s.Round, s.Step, s.Changed)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%d reconciles, %d failed\n", summary.Processed, len(summary.Failed))
	return err
}
