package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/storage"
)

// namespace is the namespace of everything that the tool makes. Users are separated by tenants, not by namespaces.
const namespace = "default"

const (
	defaultStore = ".items"
	storeUsage   = `the directory that keeps the stock, made if there is none; one process at a time can use it; "": memory, which ends with this call`
)

// The forms of the output.
const (
	tableForm = "table"
	jsonForm  = "json"
)

// options are the flags of the commands.
type options struct {
	dir, tenant string
	output      string

	wait       bool
	timeout    time.Duration
	retries    int
	workers    int
	progress   bool
	verbose    bool
	printDelay time.Duration
}

func (o *options) addStoreFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.dir, "store", defaultStore, storeUsage)
	fs.StringVar(&o.tenant, "tenant", localapi.DefaultTenant,
		"whose stock; several tenants share a store and never see each other")
	fs.StringVarP(&o.output, "output", "o", tableForm,
		"how to print the stock: table or json; json has everything else on standard error")
}

func (o *options) addFlags(c *cobra.Command) {
	fs := c.Flags()
	o.addStoreFlags(fs)
	fs.BoolVar(&o.wait, "wait", false, "wait for what is due later, instead of listing it")
	fs.DurationVar(&o.timeout, "timeout", time.Minute,
		"how long all of it may take; then what is left is told, and the exit code is 1")
	fs.IntVar(&o.retries, "retries", 5, "how often what fails is tried again; negative: never")
	fs.IntVar(&o.workers, "workers", 4, "how many items, and how many categories, are worked on at once")
	fs.BoolVar(&o.progress, "progress", false,
		"tell how it goes on standard error; on a terminal that is always done, on one line")
	fs.BoolVar(&o.verbose, "verbose", false, "log what the controllers do, on standard error")
	fs.DurationVar(&o.printDelay, "print-delay", 0, "how long the label printer takes for a label")
}

// check rejects invalid flags before anything is started.
func (o *options) check() error {
	switch {
	case o.timeout <= 0:
		return fmt.Errorf("--timeout %v: it must be more than nothing", o.timeout)
	case o.workers < 1:
		return fmt.Errorf("--workers %d: at least one is needed", o.workers)
	case o.printDelay < 0:
		return errors.New("--print-delay: it must not be negative")
	}
	return o.checkStore()
}

// checkStore is check for the flags of addStoreFlags.
func (o *options) checkStore() error {
	if !slices.Contains([]string{tableForm, jsonForm}, o.output) {
		return fmt.Errorf("--output %q: it must be table or json", o.output)
	}
	if err := storage.ValidateTenant(o.tenant); err != nil {
		return fmt.Errorf("--tenant: %w", err)
	}
	return nil
}
