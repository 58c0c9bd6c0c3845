package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/items/api"
)

func newApply() *cobra.Command {
	var files []string
	o := &options{}
	c := &cobra.Command{
		Use:     "apply -f FILE|DIR|-",
		Short:   "Say what is in stock",
		Long:    "Apply files of Items and Categories (server-side), and do what follows from them.",
		Example: "  items apply -f stock.yaml\n  cat stock.yaml | items apply -f - --store ./stock --tenant north",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if len(files) == 0 {
				return &usageError{errors.New("-f is missing: it says what to apply")}
			}
			if err := o.check(); err != nil {
				return &usageError{err}
			}
			manifests, err := readManifests(files, c.InOrStdin())
			if err != nil {
				return err
			}
			return o.converge(c, func(ctx context.Context, cl client.Client) error { return apply(ctx, cl, manifests) })
		},
	}
	c.Flags().StringArrayVarP(&files, "filename", "f", nil,
		"a file of Items and Categories in YAML or JSON, a directory of such files, or - for standard input; may be "+
			"repeated")
	o.addFlags(c)
	return c
}

func newCount() *cobra.Command {
	o := &options{}
	c := &cobra.Command{
		Use:   "count NAME QUANTITY",
		Short: "Say how much is left of an item",
		Args:  exactly("NAME", "QUANTITY"),
		RunE: func(c *cobra.Command, args []string) error {
			quantity, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil || quantity < 0 {
				return &usageError{fmt.Errorf("QUANTITY is %q: it must be a number, and not below 0", args[1])}
			}
			return o.converge(c, func(ctx context.Context, cl client.Client) error {
				var item api.Item
				key := client.ObjectKey{Namespace: namespace, Name: args[0]}
				if err := cl.Get(ctx, key, &item); err != nil {
					return o.missing(err, "item", args[0])
				}
				return controllerutil.RetryOnConflict(ctx, cl, &item, func() error {
					item.Spec.Quantity = quantity
					return nil
				})
			})
		},
	}
	o.addFlags(c)
	return c
}

func newDelete() *cobra.Command {
	o := &options{}
	c := &cobra.Command{
		Use:       "delete item|category NAME",
		Short:     "Delete an item, or a category, which goes with its last item",
		ValidArgs: []string{"item", "category"},
		Args:      exactly("item|category", "NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			kinds := map[string]client.Object{"item": &api.Item{}, "category": &api.Category{}}
			obj := kinds[args[0]]
			if obj == nil {
				return &usageError{fmt.Errorf("%q can not be deleted: say item or category", args[0])}
			}
			obj.SetNamespace(namespace)
			obj.SetName(args[1])
			return o.converge(c, func(ctx context.Context, cl client.Client) error {
				return o.missing(cl.Delete(ctx, obj), args[0], args[1])
			})
		},
	}
	o.addFlags(c)
	return c
}

func newRun() *cobra.Command {
	o := &options{}
	c := &cobra.Command{
		Use:   "run",
		Short: "Do what is due",
		Long:  "Go on with what an earlier call has left, and look at what has become due since.",
		Args:  exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return o.converge(c, func(context.Context, client.Client) error { return nil })
		},
	}
	o.addFlags(c)
	return c
}

func newList() *cobra.Command {
	o := &options{}
	c := &cobra.Command{
		Use:   "list",
		Short: "Tell what is in stock, without doing anything",
		Args:  exactly(),
		RunE:  func(c *cobra.Command, _ []string) error { return o.list(c) },
	}
	o.addStoreFlags(c.Flags())
	return c
}

func newTenants() *cobra.Command {
	o := &options{}
	c := &cobra.Command{
		Use:   "tenants",
		Short: "Tell whose stock is in the store",
		Args:  exactly(),
		RunE:  func(c *cobra.Command, _ []string) error { return o.tenants(c) },
	}
	c.Flags().StringVar(&o.dir, "store", defaultStore, storeUsage)
	return c
}

// missing returns the error for an object that does not exist. It names the object and the tenant.
func (o *options) missing(err error, kind, name string) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("tenant %s has no %s %q", o.tenant, kind, name)
	}
	return err
}
