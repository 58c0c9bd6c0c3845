package scaffold

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// edits are replacements in the files of a project, by path. A path that does not exist yet is created.
type edits map[string][]string

// moved migrates a copy of testdata/kubebuilder that was edited before, and returns its files and the report.
func moved(t *testing.T, all edits) (before, after map[string]string, report string) {
	t.Helper()
	dir := kubebuilderProject(t)
	for path, pairs := range all {
		full := filepath.Join(dir, path)
		old, _ := os.ReadFile(full)
		text := string(old)
		if text == "" {
			text = pairs[0]
			if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
				t.Fatal(err)
			}
		} else if text = strings.NewReplacer(pairs...).Replace(text); text == string(old) && pairs[0] != pairs[1] {
			t.Fatalf("%s has no %q", path, pairs[0])
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before = filesOf(t, dir)
	var out bytes.Buffer
	if err := Migrate(t.Context(), MigrateOptions{Dir: dir, Source: root, Out: &out}); err != nil {
		t.Fatal(err)
	}
	return before, filesOf(t, dir), out.String()
}

// TestMigrateKeepsMain: what users have written between the statements of kubebuilder stays.
func TestMigrateKeepsMain(t *testing.T) {
	const newManager = "\tmgr, err := ctrl.NewManager("
	const mine = "\tif err := prepare(); err != nil {\n\t\tos.Exit(3)\n\t}\n"
	_, after, report := moved(t, edits{"cmd/main.go": {
		"\tif secureMetrics {\n", mine + "\n\tif secureMetrics {\n", newManager, mine + newManager,
	}})
	main := after["cmd/main.go"]
	if strings.Count(main, mine) != 2 || !strings.Contains(main, "serving.CertFile = ") ||
		strings.Contains(main, "metricsServerOptions") || strings.Contains(main, "metrics/filters") {
		t.Errorf("main.go:\n%s", main)
	}
	if strings.Contains(report, "metricsServerOptions") {
		t.Errorf("report:\n%s", report)
	}
	for name, pairs := range map[string][]string{
		"a filter of their own": {"filters.WithAuthenticationAndAuthorization", "filters.WithMine"},
		"another field":         {"\t\tSecureServing: secureMetrics,\n", "\t\tExtraHandlers: mine,\n"},
	} {
		_, after, report := moved(t, edits{"cmd/main.go": pairs})
		if !strings.Contains(after["cmd/main.go"], strings.TrimSpace(pairs[1])) ||
			!strings.Contains(report, "is not what kubebuilder has written, and is left") {
			t.Errorf("%s: main.go:\n%s\nreport:\n%s", name, after["cmd/main.go"], report)
		}
	}
}

// TestMigrateLeaves: files that have nothing to move stay as they are to the byte, and so do comments, files of other
// modules, and what does not parse.
func TestMigrateLeaves(t *testing.T) {
	const odd = "package odd\n\nvar   x=1 // ctrl.Log and reconcile.TerminalError(nil)\n"
	const broken = "package odd\n\nimport ctrl \"sigs.k8s.io/controller-runtime\"\n\nvar x = ctrl.Log(\n"
	before, after, report := moved(t, edits{
		"internal/odd/odd.go":           {odd},
		"internal/broken/broken.go":     {broken},
		"internal/odd/testdata/odd.go":  {broken},
		".hidden/odd.go":                {broken},
		"tools/go.mod":                  {"module tools\n"},
		"tools/odd.go":                  {broken},
		"internal/controller/remark.go": {"package controller\n\n// remark: see ctrl.Log.\nvar remark = 1\n"},
		"internal/controller/cart_controller.go": {
			"func (", "// see reconcile.TerminalError(err)\nfunc (",
		},
	})
	for path, text := range before {
		odd := strings.Contains(path, "odd") || strings.Contains(path, "broken") || strings.Contains(path, "remark")
		if odd && after[path] != text {
			t.Errorf("%s has changed:\n%s", path, after[path])
		}
	}
	got := after["internal/controller/cart_controller.go"]
	if !strings.Contains(got, "// see reconcile.TerminalError(err)") || !strings.Contains(got, "flyball/manager/ctrl") {
		t.Errorf("cart_controller.go:\n%s", got)
	}
	if !strings.Contains(report, "internal/broken/broken.go:") || !strings.Contains(report, "is left as it was") ||
		regexp.MustCompile("testdata|hidden|tools").MatchString(report) {
		t.Errorf("report:\n%s", report)
	}
}

func TestMigrateDeployment(t *testing.T) {
	const namespace = "- name: POD_NAMESPACE\nvalueFrom:\nfieldRef:\nfieldPath: metadata.namespace\n"
	const path, image = "config/manager/manager.yaml", "        image: controller:latest\n"
	for _, c := range []struct {
		name, line string // line follows the image
		want       string // without indentation
		note       string
	}{
		{"plain", "", "- name: manager\nenv:\n" + namespace + "image: controller:latest\nargs:", ""},
		{"an image policy", "        imagePullPolicy: Always\n", "imagePullPolicy: Always\nargs:", ""},
		{
			"an environment", "        env: # mine\n        - name: A\n          value: b\n",
			"env: # mine\n" + namespace + "- name: A\nvalue: b\n", "",
		},
		{
			"an indented one", "        env:\n          - name: A\n            value: b\n",
			"env:\n" + namespace + "- name: A\nvalue: b\n", "",
		},
		{
			"a flow", "        env: [{name: A, value: b}]\n", "env: [{name: A, value: b}]\n",
			"the form of env is not known",
		},
	} {
		_, after, report := moved(t, edits{path: {image, image + c.line}})
		var got strings.Builder
		for line := range strings.Lines(after[path]) {
			got.WriteString(strings.TrimLeft(line, " "))
		}
		if !strings.Contains(got.String(), c.want) || strings.Count(got.String(), "scheme: HTTPS\n") != 2 {
			t.Errorf("%s:\n%s", c.name, after[path])
		}
		if container, err := managerContainer([]byte(after[path])); err != nil || container == nil {
			t.Errorf("%s: %v\n%s", c.name, err, after[path])
		}
		if c.note == "" && strings.Contains(report, path+":") || !strings.Contains(report, c.note) {
			t.Errorf("%s: report:\n%s", c.name, report)
		}
	}
	_, after, report := moved(t, edits{path: {"name: manager\n", "name: other\n", image, "        image: mine:v1\n"}})
	if !strings.Contains(report, "set POD_NAMESPACE") {
		t.Errorf("another container: %s\nreport:\n%s", after[path], report)
	}
	_, after, report = moved(t, edits{
		path:                                {image, "        image: mine:v1\n"},
		"config/default/metrics_patch.yaml": {"- op: add\n  value: --metrics-secure=false\n"},
	})
	if text := after[path]; strings.Contains(text, "HTTPS") || !strings.Contains(text, "POD_NAMESPACE") ||
		!strings.Contains(report, "livenessProbe is left as it is") {
		t.Errorf("without TLS: %s\nreport:\n%s", text, report)
	}
}

// TestMigrateCommitted: work that is not committed is not mixed with the edits.
func TestMigrateCommitted(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	dir := kubebuilderProject(t)
	git := func(args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", append([]string{
			"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false",
		}, args...)...)
		if text, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, text)
		}
	}
	git("init", "-q")
	o := MigrateOptions{Dir: dir, Source: root, Out: &bytes.Buffer{}}
	if err := Migrate(t.Context(), o); err == nil || !strings.Contains(err.Error(), "work that is not committed") {
		t.Errorf("with work that is not committed: %v", err)
	}
	git("add", ".")
	git("commit", "-q", "-m", "all")
	if err := Migrate(t.Context(), o); err != nil {
		t.Errorf("with all work committed: %v", err)
	}
	git("checkout", "-q", ".")
	if err := os.WriteFile(filepath.Join(dir, "new.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	o.Force = true
	if err := Migrate(t.Context(), o); err != nil {
		t.Errorf("with --force: %v", err)
	}
}
