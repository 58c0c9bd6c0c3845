package main

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/process"
	"github.com/flyball-dev/flyball/localapi/audit"
)

// parse reads a command line.
func parse(t *testing.T, args ...string) *process.Options {
	t.Helper()
	o := process.NewOptions()
	fs := pflag.NewFlagSet("ci", pflag.ContinueOnError)
	o.AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

// Everything that is wrong is said at once. Without flags only the default controller runs, and it is dry.
//
// Source: TestCompleteImageStreamTags, TestCompleteImageStream and TestCompleteSet of cmd/dptp-controller-manager of
// openshift/ci-tools, and what its flags require.
func TestComplete(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		want []string
	}{
		"no flags": {"", []string{"--ci-operator-config-path is required", "--job-config-path is required"}},
		"enough":   {"--ci-operator-config-path=. --job-config-path=.", nil},
		"unknown controller": {
			"--controllers=promotion,testimagestreamimportcleaner",
			[]string{`there is no "promotion"; there are promotionreconciler, test_images_distributor,`},
		},
		"no controller": {"--controllers=", []string{"none is asked for"}},
		"no namespace":  {"--controllers=serviceaccount_secret_refresher", []string{"enabled-namespace is required"}},
		"a namespace": {
			"--controllers=serviceaccount_secret_refresher --serviceAccountRefresherOptions.enabled-namespace=a,b", nil,
		},
		"tags, streams, expressions": {
			"--controllers=test_images_distributor --ci-operator-config-path=. " +
				"--testImagesDistributorOptions.additional-image-stream-tag=a/b:c,d/e " +
				"--testImagesDistributorOptions.additional-image-stream=x,a/b " +
				"--promotionReconcilerOptions.ignore-image-stream=( --port=70000",
			[]string{
				`"e" in namespace "d" is no image stream tag`, `"x" is no image stream: want namespace/name`,
				"missing closing )", "--port 70000",
			},
		},
		"no such profiles": {
			"--controllers=ephemeral_cluster_provisioner --cluster-profiles-path=nowhere",
			[]string{"--cluster-profiles-path: open nowhere"},
		},
	} {
		o := parse(t, strings.Fields(c.args)...)
		err := o.Complete()
		if (err != nil) != (c.want != nil) {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range c.want {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want it to say %q", name, err, want)
			}
		}
		if c.args == "" && (!o.DryRun || len(o.Controllers) != 1 || o.Controllers[0] != process.Promotion) {
			t.Errorf("the defaults are %v, dry run %t", o.Controllers, o.DryRun)
		}
	}
}

// Names of controllers that were spelled without underscores are known.
func TestOtherSpellings(t *testing.T) {
	o := parse(t, "--controllers=promotionreconciler,testimagesdistributor,ephemeralclusterprovisioner",
		"--ci-operator-config-path=c", "--job-config-path=j")
	if err := o.Complete(); err != nil {
		t.Fatal(err)
	}
	if want := []string{process.Promotion, process.Distributor, process.Ephemeral}; !slices.Equal(o.Controllers, want) {
		t.Errorf("the controllers are %v, want %v", o.Controllers, want)
	}
}

// The program's exit codes: what is wrong with the command line is all on stderr, with the controllers that there
// are, before any cluster is asked for anything.
func TestExitCode(t *testing.T) {
	t.Parallel()
	for args, c := range map[string]struct {
		code int
		want []string
	}{
		"--controllers=promotion,testimagestreamimportcleaner,nonsense --cluster-profiles-path=nowhere " +
			"--port=70000": {1, []string{
			`--controllers: there is no "promotion"; there are promotionreconciler, test_images_distributor, serviceaccount_secret_refresher, testimagestreamimportcleaner, ` +
				"ephemeral_cluster_provisioner, serviceaccount_secret_minter, fake_importer, fake_job_runner\n",
			`--controllers: there is no "nonsense"; there are `, "--cluster-profiles-path: open nowhere",
			"--port 70000",
		}},
		"--controllers=testimagestreamimportcleaner --kubeconfig=nowhere": {1, []string{"read kubeconfig", "nowhere"}},
		"--dry-run false": {2, []string{`unexpected argument "false"`}},
		"--help":          {0, []string{"--controllers"}},
	} {
		c, program := c, launch(t, strings.Fields(args)...)
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			_ = program.Wait() // whose error is the code
			if code := program.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d:\n%s", code, c.code, program.output())
			}
			for _, want := range c.want {
				if !strings.Contains(program.output(), want) {
					t.Errorf("it does not say %q, but\n%s", want, program.output())
				}
			}
		})
	}
}

// Without --controllers only the default one runs: nobody watches what the others work on, and nobody a build cluster.
func TestDefaultController(t *testing.T) {
	t.Parallel()
	w := newPrograms(t)
	stop := w.start(parse(t, Args(w.stage.Dir)[1:]...)) // all but the controllers
	w.Until("there is a promotion job", func() bool {
		var jobs api.ProwJobList
		w.Must(w.List(w.Ctx, &jobs, client.HasLabels{api.PromotionLabel}))
		return len(jobs.Items) > 0
	})
	stop()
	watched := map[string][]string{}
	for cluster, server := range w.servers {
		for _, e := range server.Audit().Entries(func(e audit.Entry) bool { return e.Verb == "watch" }) {
			watched[cluster] = append(watched[cluster], e.Resource)
		}
		slices.Sort(watched[cluster])
		watched[cluster] = slices.Compact(watched[cluster])
	}
	if want := []string{"imagestreams", "prowjobs"}; !slices.Equal(watched[Hub], want) ||
		len(watched[Build01]) != 0 {
		t.Errorf("watched are %v, want %v of the hub", watched, want)
	}
}

// Dry, everything runs, and nothing changes: what would be written is asked for as a dry run, and no version moves.
func TestDryRun(t *testing.T) {
	t.Parallel()
	w := newPrograms(t)
	ec := &api.EphemeralCluster{}
	ec.Namespace, ec.Name, ec.Spec.CIOperator.Test.Workflow = "ephemeral-cluster", "dry", "w"
	w.Must(w.Create(w.Ctx, ec))
	o := parse(t, append(Args(w.stage.Dir), "--dry-run=true")...)
	w.forget()
	stop := w.start(o)
	w.Until("somebody asks what would become of the cluster", func() bool {
		return len(
			w.servers[Hub].Audit().Entries(
				func(e audit.Entry) bool { return e.DryRun && e.Resource == "ephemeralclusters" },
			),
		) > 0
	})
	stop()
	for _, e := range w.writes() {
		if !e.DryRun {
			t.Errorf("written: %v", e)
		}
	}
	after := &api.EphemeralCluster{}
	w.Must(w.Get(w.Ctx, client.ObjectKeyFromObject(ec), after))
	if after.ResourceVersion != ec.ResourceVersion {
		t.Errorf("version %s became %s", ec.ResourceVersion, after.ResourceVersion)
	}
}

// The kubeconfig changes: the program ends without an error and gives the lease away at once.
func TestKubeconfigChanges(t *testing.T) {
	t.Parallel()
	w := newPrograms(t)
	c := w.spawn(first, append(Args(w.stage.Dir), candidate...)...)
	w.Until("it leads", func() bool { return w.holder() != "" })
	text, err := os.ReadFile(w.kubeconfig(first))
	w.Must(err)
	w.Must(os.WriteFile(w.kubeconfig(first), append(text, "# changed\n"...), 0o600))
	if err := c.Wait(); err != nil {
		t.Errorf("it ended with %v:\n%s", err, c.output())
	}
	if h := w.holder(); h != "" {
		t.Errorf("%s holds the lease still", h)
	}
}

// A signal ends it without an error.
func TestSignal(t *testing.T) {
	t.Parallel()
	w := newPrograms(t)
	c := w.spawn(first, Args(w.stage.Dir)...)
	w.Until("it runs", func() bool { return strings.Contains(c.output(), "Manager started") })
	w.Must(c.Process.Signal(syscall.SIGTERM))
	if err := c.Wait(); err != nil {
		t.Errorf("it ended with %v:\n%s", err, c.output())
	}
}
