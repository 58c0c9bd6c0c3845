package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	oneshot "github.com/flyball-dev/flyball/cmd/flyball/run"
	"github.com/flyball-dev/flyball/cmd/flyball/store"
	"github.com/flyball-dev/flyball/localapi"
)

// shop is a namespace with an application in it, and a resource of its own, in an order that only works when it is
// sorted.
const shop = `apiVersion: examples.flyball.dev/v1
kind: Shop
metadata: {name: corner, namespace: shops}
spec: {owner: ada}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shops}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx, ports: [{containerPort: 80}]}]}
---
# nothing but a comment
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Service
  metadata: {name: web, namespace: shops}
  spec: {selector: {app: web}, ports: [{port: 80}]}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: settings}
  data: {color: blue}
---
apiVersion: v1
kind: Namespace
metadata: {name: shops}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.examples.flyball.dev}
spec:
  group: examples.flyball.dev
  scope: Namespaced
  names: {plural: shops, singular: shop, kind: Shop, listKind: ShopList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {owner: {type: string}}}}}}
`

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRun applies, converges, tells; does nothing the second time, and says so; and leaves a store that serve serves.
func TestRun(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir, files := filepath.Join(t.TempDir(), "store"), t.TempDir()
	write(t, files, "shop.yaml", shop)
	write(t, files, "notes.txt", "not an object")
	code, out, errs := flyball(t.Context(), "run", "-f", files, "--store", dir)
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d: %s\n%s", code, errs, out)
	}
	for _, want := range []string{
		"NAMESPACE   KIND                       NAME                         APPLIED   CONDITIONS",
		"Available=True", "NamesAccepted=True, Established=True", "default     ConfigMap", "shops       Shop",
		"2 pods", "1 deployments", "reconciles in ", "deployment-controller ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	code, out, errs = flyball(t.Context(), "run", "-f", files, "--store", dir)
	if code != 0 || !strings.Contains(out, "Nothing changed.") || strings.Contains(out, "created") ||
		strings.Count(out, "unchanged") != 6 {
		t.Errorf("second run: exit code %d: %s\n%s", code, errs, out)
	}
	code, out, errs = flyball(t.Context(), "run", "--store", dir, "--tenant", "other")
	if code != 0 || strings.Contains(out, "deployments") {
		t.Errorf("another tenant: exit code %d: %s\n%s", code, errs, out)
	}
	write(t, files, "shop.yaml", strings.Replace(shop, "replicas: 2", "replicas: 3", 1))
	code, out, errs = flyball(t.Context(), "run", "-f", files, "--store", dir)
	if code != 0 || strings.Count(out, "configured") != 1 || !strings.Contains(out, "Created 1 pods;") {
		t.Errorf("changed: exit code %d: %s\n%s", code, errs, out)
	}
	served(t, dir)
}

// served opens the store as kubectl would.
func served(t *testing.T, dir string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	serving, stop := context.WithCancel(ctx)
	ended := make(chan string, 1)
	go func() {
		_, _, errs := flyball(serving, "serve", "--kubeconfig", kubeconfig, "--store", dir)
		ended <- errs
	}()
	d, err := clientOf(ctx, t, kubeconfig).AppsV1().Deployments("shops").Get(ctx, "web", metav1.GetOptions{})
	if err != nil || d.Status.ReadyReplicas != 3 {
		t.Errorf("served: %v, %v", d, err)
	}
	stop()
	if errs := <-ended; errs != "" {
		t.Error(errs)
	}
}

func TestRunOutputs(t *testing.T) {
	file := write(t, t.TempDir(), "shop.yaml", shop)
	for _, c := range []struct {
		form string
		read func([]byte, any) error
	}{{"json", json.Unmarshal}, {"yaml", func(b []byte, into any) error { return yaml.Unmarshal(b, into) }}} {
		code, out, errs := flyball(t.Context(), "run", "-f", file, "-o", c.form, "--controllers",
			"deployment,replicaset")
		var list struct {
			Kind  string
			Items []struct{ Kind string }
		}
		if err := c.read([]byte(out), &list); err != nil || code != 0 || list.Kind != "List" || len(list.Items) != 6 {
			t.Errorf("%s: exit code %d, %v, %+v", c.form, code, err, list)
		}
		if !strings.Contains(errs, "reconciles in ") || strings.Contains(errs, "endpoint") {
			t.Errorf("%s: the summary is %q", c.form, errs)
		}
	}
}

// TestRunDueLater: a rollout that does not get on is due at its deadline, which is listed, or waited for until the
// time is over; then what is not current is named.
func TestRunDueLater(t *testing.T) {
	defer goleak.VerifyNone(t)
	file := write(t, t.TempDir(), "stuck.yaml",
		strings.NewReplacer("image: nginx", "image: 'nginx:broken'", "replicas: 2", "replicas: 1").Replace(shop))
	code, out, errs := flyball(t.Context(), "run", "-f", file)
	if code != 0 || !strings.Contains(out, "Due later: deployment-controller shops/web in ") ||
		!strings.Contains(out, "Available=False (MinimumReplicasUnavailable)") {
		t.Errorf("exit code %d: %s\n%s", code, errs, out)
	}
	code, _, errs = flyball(t.Context(), "run", "-f", write(t, t.TempDir(), "shop.yaml", shop), "--wait")
	if code != 0 {
		t.Errorf("what becomes current: exit code %d: %s", code, errs)
	}
	synctest.Test(t, func(t *testing.T) {
		var out, summary bytes.Buffer
		o := oneshot.Options{
			Files: []string{file}, Namespace: "default", Controllers: []string{"*"}, Kubelet: true,
			Store: store.Options{Tenant: localapi.DefaultTenant}, Wait: true, Timeout: time.Minute,
			Output: oneshot.Table, Out: &out, Summary: &summary,
		}
		begin := time.Now()
		err := oneshot.Run(klog.NewContext(t.Context(), klog.Logger{}), o)
		if err == nil || !strings.Contains(err.Error(), "--timeout: 1m0s have passed") ||
			!strings.Contains(err.Error(), "Deployment shops/web is InProgress: 0 of 1 pods are available") ||
			!strings.Contains(summary.String(), "Due later: deployment-controller") {
			t.Errorf("waited for %v: %v\n%s%s", time.Since(begin), err, &out, &summary)
		}
	})
}

// TestRunUnhandled: nobody waits for what nobody does, unless told to.
func TestRunUnhandled(t *testing.T) {
	defer goleak.VerifyNone(t)
	const pod = "{metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}"
	const sets = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec: {serviceName: db, selector: " +
		"{matchLabels: {app: a}}, template: " + pod + "}\n" +
		"---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec: {selector: {matchLabels: {app: " +
		"a}}, " +
		"template: " + pod + "}\n" +
		"---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec: {template: {spec: {restartPolicy: " +
		"Never, " +
		"containers: [{name: a, image: a}]}}}\n"
	file := write(t, t.TempDir(), "sets.yaml", sets)
	want := []string{
		"StatefulSet (no statefulset-controller runs): db (",
		"DaemonSet (no daemonset-controller runs): agent (", "Job (no job-controller runs): once (",
	}
	for _, c := range []struct {
		args []string
		code int
	}{{nil, 0}, {[]string{"--wait"}, 1}, {[]string{"--wait", "--accept-unhandled"}, 0}} {
		code, out, errs := flyball(t.Context(), append([]string{"run", "-f", file}, c.args...)...)
		for _, w := range want {
			if code != c.code || !strings.Contains(out+errs, w) {
				t.Errorf("%q: exit code %d, there is no %q in %s%s", c.args, code, w, out, errs)
			}
		}
		if (code != 0) != strings.Contains(errs, "nothing was applied") {
			t.Errorf("%q: exit code %d: %s", c.args, code, errs)
		}
	}
	withStatus := strings.Replace(shop, "storage: true\n", "storage: true\n    subresources: {status: {}}\n", 1)
	for _, args := range [][]string{
		{write(t, t.TempDir(), "shop.yaml", withStatus)},
		{write(t, t.TempDir(), "d.yaml", shop), "--controllers", "-replicaset,*"},
	} {
		code, _, errs := flyball(t.Context(), append([]string{"run", "--wait", "-f"}, args...)...)
		if code != 1 || !strings.Contains(errs, "Shop (no controller of examples.flyball.dev runs)") &&
			!strings.Contains(errs, "Deployment (no replicaset-controller runs)") {
			t.Errorf("%q: exit code %d: %s", args, code, errs)
		}
	}
}

// TestRunUnknownKinds: all of them are named, and nothing is applied, unless they are to be skipped.
func TestRunUnknownKinds(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := filepath.Join(t.TempDir(), "store")
	file := write(t, t.TempDir(), "mixed.yaml",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: cert-manager.io/v1\nkind: "+
			"Certificate\nmetadata: {name: b}\n"+
			"---\napiVersion: v1\nkind: Nonsense\nmetadata: {name: c}\n")
	want := []string{"Certificate of cert-manager.io/v1: b (", "Nonsense of v1: c ("}
	code, out, errs := flyball(t.Context(), "run", "-f", file, "--store", dir)
	if code != 1 || !strings.Contains(errs, want[0]) || !strings.Contains(errs, want[1]) || out != "" {
		t.Errorf("exit code %d: %s\n%s", code, errs, out)
	}
	code, out, errs = flyball(t.Context(), "run", "-f", file, "--store", dir, "--skip-unknown-kinds")
	if code != 0 || !strings.Contains(out, want[0]) || !strings.Contains(out, want[1]) ||
		strings.Count(out, "created") != 1 {
		t.Errorf("skipping: exit code %d: %s\n%s", code, errs, out)
	}
}

// TestRunTellsWhatWasApplied: one object that is refused does not hide what became of the others.
func TestRunTellsWhatWasApplied(t *testing.T) {
	file := write(t, t.TempDir(), "two.yaml",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: "+
			"{name: BAD}\n")
	code, out, errs := flyball(t.Context(), "run", "-f", file)
	if code != 1 || !strings.Contains(out, "good") ||
		!strings.Contains(out, "Created 1 configmaps.\nThe controllers were not run") ||
		!strings.Contains(errs, "BAD") {
		t.Errorf("exit code %d: %s\n%s", code, errs, out)
	}
}

func TestRunRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		code int
		args []string
		want string
	}{
		{2, nil, "nothing to do"},
		{2, []string{"-f", "x", "-o", "xml"}, "--output"},
		{2, []string{"-f", "x", "--controllers", "nonsense"}, "--controllers"},
		{2, []string{"-f", "x", "--tenant", "a/b"}, "--tenant"},
		{2, []string{"-f", "x", "--timeout", "0s"}, "--timeout"},
		{1, []string{"-f", filepath.Join(dir, "none.yaml")}, "none.yaml"},
		{1, []string{"-f", dir}, "no objects in " + dir},
		{1, []string{"-f", write(t, t.TempDir(), "a.yaml", "a: [")}, "a.yaml, document 1"},
		{
			1,
			[]string{"-f", write(t, t.TempDir(), "b.yaml", "apiVersion: v1\nkind: ConfigMap\n")},
			"without metadata.name",
		},
		{
			1,
			[]string{
				"-f",
				write(t, t.TempDir(), "c.yaml", "---\napiVersion: v1\nkind: Nonsense\nmetadata: {name: a}\n"),
			},
			"nothing was applied, because these kinds are not known:\n  Nonsense of v1: a (",
		},
		{
			1,
			[]string{"-f", write(t, t.TempDir(), "d.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: A}\n")},
			"d.yaml, document 1: apply ConfigMap A: ConfigMap \"A\" is invalid",
		},
	} {
		if code, _, errs := flyball(t.Context(), append([]string{"run"}, c.args...)...); code != c.code ||
			!strings.Contains(errs, c.want) {
			t.Errorf("%q: exit code %d, %q, want %d and %q", c.args, code, errs, c.code, c.want)
		}
	}
}

// TestErrorsAreHarmless: names and words of others, in the last line of a command, cannot give orders to the terminal,
// nor turn the text around.
func TestErrorsAreHarmless(t *testing.T) {
	code, _, errs := flyball(t.Context(), "run", "-f", "none\x1b]0;owned\a\u202egnp.yaml")
	if code != 1 || !strings.Contains(errs, "owned") || strings.ContainsAny(errs, "\x1b\a\u202e") {
		t.Errorf("exit code %d, %q", code, errs)
	}
}
