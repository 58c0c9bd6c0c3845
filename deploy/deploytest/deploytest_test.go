package deploytest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/internal/kit"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/flags"
	"github.com/flyball-dev/flyball/manager/metrics"
)

// good is a kustomization that everything here accepts.
const good = "../../examples/operators/items/deploy"

// defects are the ways in which a deployment can be bad: what is done to the manifests, as the patches of a
// kustomization, or to the program; and a part of what the test of that deployment then prints.
var defects = map[string]struct {
	kind, patch string
	program     string
	check       func(t *testing.T, p Program)
	want        string
}{
	"none": {check: everything},
	"replicas": {
		kind: "Deployment", patch: "{op: remove, path: /spec/replicas}", check: restricted, want: "1 replicas",
	},
	"grace": {
		kind: "Deployment", patch: "{op: replace, path: /spec/template/spec/terminationGracePeriodSeconds, value: 5}",
		check: restricted, want: "5s are less",
	},
	"no security of the Pod": {
		kind: "Deployment", patch: "{op: remove, path: /spec/template/spec/securityContext}", check: restricted,
		want: "pod: {",
	},
	"root file system": {
		kind:  "Deployment",
		patch: "{op: remove, path: /spec/template/spec/containers/0/securityContext/readOnlyRootFilesystem}",
		check: restricted, want: "container: {",
	},
	"no security of the container": {
		kind: "Deployment", patch: "{op: remove, path: /spec/template/spec/containers/0/securityContext}",
		check: restricted, want: "container: {",
	},
	"no limits": {
		kind: "Deployment", patch: "{op: remove, path: /spec/template/spec/containers/0/resources/limits}",
		check: restricted, want: "resources: {",
	},
	"another version": {
		kind: "Deployment", patch: "{op: replace, path: /spec/template/spec/containers/0/image, value: 'items:latest'}",
		check: restricted, want: "image items:latest",
	},
	"a probe of no port": {
		kind:  "Deployment",
		patch: "{op: replace, path: /spec/template/spec/containers/0/livenessProbe/httpGet/port, value: other}",
		check: restricted, want: "probe ",
	},
	"no probe": {
		kind: "Deployment", patch: "{op: remove, path: /spec/template/spec/containers/0/readinessProbe}",
		check: restricted, want: "probe nil",
	},
	"a token for all": {
		kind: "ServiceAccount", patch: "{op: remove, path: /automountServiceAccountToken}", check: restricted,
		want: "gets its token",
	},
	"another account": {
		kind: "Deployment", patch: "{op: replace, path: /spec/template/spec/serviceAccountName, value: default}",
		check: restricted, want: "gets its token",
	},
	"another subject": {
		kind: "RoleBinding", patch: "{op: replace, path: /subjects/0/name, value: default}", check: restricted,
		want: "is not bound to items-manager alone",
	},
	"a wildcard": {
		kind: "Role", patch: "{op: replace, path: /rules/0/verbs, value: ['*']}", check: restricted, want: "grants {",
	},
	"an unknown field": {
		kind: "Deployment", patch: "{op: add, path: /spec/template/spec/restartpolicy, value: Always}",
		check: everything, want: "restartpolicy",
	},
	"a forbidden request": {program: "asks for nodes", check: everything, want: "forbidden: ["},
}

func restricted(t *testing.T, p Program) { Restricted(t, Render(t, p.Manifests)) }

func everything(t *testing.T, p Program) {
	restricted(t, p)
	p.Works(t)
}

// defective names the defect, in the process that tests a bad deployment.
const defective = "FLYBALL_DEFECT"

// TestDefects: a deployment with a defect fails its test, and the test names the defect. Without one, it passes. Each
// deployment is tested in a process of its own, because its test fails.
func TestDefects(t *testing.T) {
	kit.Guard(t)
	for name, d := range defects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := exec.Command(os.Args[0], "-test.run=^TestDeployment$", "-test.v")
			command.Env = append(os.Environ(), defective+"="+name)
			text, err := command.CombinedOutput()
			if failed := strings.Contains(string(text), "--- FAIL: TestDeployment"); failed != (d.want != "") ||
				failed != (err != nil) || !strings.Contains(string(text), d.want) {
				t.Errorf("%v; want %q in\n%s", err, d.want, text)
			}
		})
	}
}

// TestDeployment tests a deployment that TestDefects asks for.
func TestDeployment(t *testing.T) {
	d, asked := defects[os.Getenv(defective)]
	if !asked {
		t.Skip("it is run by TestDefects")
	}
	dir := t.TempDir()
	here, err := os.Getwd()
	must(t, err)
	dir, err = filepath.EvalSymlinks(dir)
	must(t, err)
	base, err := filepath.Rel(dir, filepath.Join(here, good))
	must(t, err)
	text := fmt.Sprintf("resources: [%s]\n", base)
	if d.patch != "" {
		text += fmt.Sprintf("patches:\n- target: {kind: %s}\n  patch: |-\n    - %s\n", d.kind, d.patch)
	}
	must(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o644))
	d.check(t, Program{Manifests: dir, Run: func(ctx context.Context, args []string, stderr io.Writer) error {
		return run(ctx, d.program, args, stderr)
	}})
}

// run is a program that has no controllers. It is called manager in the command line.
func run(ctx context.Context, defect string, args []string, stderr io.Writer) error {
	f, set := flags.New("items-manager"), pflag.NewFlagSet("manager", pflag.ContinueOnError)
	f.AddFlags(set)
	if err := set.Parse(args[1:]); err != nil {
		return err
	}
	defer f.StartLogging(stderr)()
	config, err := f.RESTConfig()
	if err != nil {
		return err
	}
	mgr, err := manager.New(config, f.ManagerOptions(metrics.New()))
	if err != nil {
		return err
	}
	if defect == "asks for nodes" {
		if err := mgr.GetAPIReader().List(ctx, &corev1.NodeList{}); !apierrors.IsForbidden(err) {
			return fmt.Errorf("nodes are listed: %w", err)
		}
	}
	return mgr.Run(ctx)
}
