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
	const onLinux = "//go:build linux\n\npackage onos\n\nimport (\n\tctrl \"sigs.k8s.io/controller-runtime\"\n)\n\n" +
		"var log = ctrl.Log\n" // declared twice, but not in one program
	before, after, report := moved(t, edits{
		"internal/odd/odd.go":           {odd},
		"internal/broken/broken.go":     {broken},
		"internal/odd/testdata/odd.go":  {broken},
		".hidden/odd.go":                {broken},
		"tools/go.mod":                  {"module tools\n"},
		"tools/odd.go":                  {broken},
		"internal/onos/one.go":          {onLinux},
		"internal/onos/two.go":          {strings.Replace(onLinux, "linux", "!linux", 1)},
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
		if managerContainer([]byte(after[path])) == nil {
			t.Errorf("%s:\n%s", c.name, after[path])
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

// TestCreateAfterMigrate: files of kubebuilder are extended by what fits into them. What does not is printed.
func TestCreateAfterMigrate(t *testing.T) {
	dir := kubebuilderProject(t)
	o := MigrateOptions{Dir: dir, Source: root, Force: true, Out: &bytes.Buffer{}}
	if err := Migrate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	edit(t, dir, "api/v1/cart_types.go", "type Cart struct",
		"// +kubebuilder:object:root=true\n\n// Cart is one.\ntype Cart struct")
	const test = "internal/webhook/v1/cart_webhook_test.go"
	const theirs = "package v1\n\nvar theirs int\n"
	if err := os.WriteFile(filepath.Join(dir, test), []byte(theirs), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := CreateAPI(t.Context(), APIOptions{Dir: dir, Group: "shop", Version: "v2", Kind: "Cart", Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	err = CreateWebhook(t.Context(), WebhookOptions{
		Dir: dir, Group: "shop", Version: "v1", Kind: "Cart", Validation: true, Out: &out,
	})
	if err != nil {
		t.Fatal(err)
	}
	got := filesOf(t, dir)
	if !strings.Contains(got["api/v1/cart_types.go"], "root=true\n"+storageMarker) {
		t.Errorf("no version is stored:\n%s", got["api/v1/cart_types.go"])
	}
	if strings.Contains(got["cmd/main.go"], "hooks.") || !strings.Contains(out.String(), "if hooks.CertDir ==") {
		t.Errorf("cmd/main.go:\n%s\nreport:\n%s", got["cmd/main.go"], &out)
	}
	if got[test] != theirs || !strings.Contains(out.String(), test+" is of the package v1") {
		t.Errorf("%s:\n%s\nreport:\n%s", test, got[test], &out)
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

// TestMigrateSchemeBuilder: kinds are registered by apimachinery's scheme builder, so that controller-runtime leaves
// the packages of kinds.
func TestMigrateSchemeBuilder(t *testing.T) {
	const builder = `package v2

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

var (
	// GroupVersion is group version used to register these objects.
	GroupVersion = schema.GroupVersion{Group: "shop.example.com", Version: "v2"}

	// SchemeBuilder is used to add go types to the GroupVersionKind scheme.
	SchemeBuilder = &scheme.Builder{GroupVersion: GroupVersion}

	// AddToScheme adds the types in this group-version to the given scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)
`
	const types = `package v2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type Till struct {
	metav1.TypeMeta
}

type TillList struct {
	metav1.TypeMeta
}

func init() {
	SchemeBuilder.Register(&Till{}, &TillList{})
}
`
	_, after, report := moved(t, edits{
		"api/v2/groupversion_info.go": {builder}, "api/v2/till_types.go": {types},
		"api/v2/more_types.go": {
			"package v2\n\nfunc init() {\n\tSchemeBuilder.Register(\n\t\t&More{},\n\t\t&MoreList{},\n\t)\n}\n",
		},
		"pkg/other/other.go": {"package other\n\nfunc init() { SchemeBuilder.Register(&Other{}) }\n"},
	})
	want := map[string][]string{
		"api/v2/groupversion_info.go": {
			"\t\"k8s.io/apimachinery/pkg/runtime\"\n", "\tmetav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n",
			"\tSchemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {\n" +
				"\t\tmetav1.AddToGroupVersion(s, GroupVersion)\n",
		},
		"api/v2/till_types.go": {
			"\t\"k8s.io/apimachinery/pkg/runtime\"\n", "\tSchemeBuilder.Register(func(s *runtime.Scheme) error {\n" +
				"\t\ts.AddKnownTypes(GroupVersion, &Till{}, &TillList{})\n\t\treturn nil\n\t})\n",
		},
		"api/v2/more_types.go": {"s.AddKnownTypes(GroupVersion, &More{},"},
		"pkg/other/other.go":   {"SchemeBuilder.Register(&Other{})"},
	}
	for path, texts := range want {
		for _, text := range texts {
			if !strings.Contains(after[path], text) {
				t.Errorf("%s lacks %q:\n%s", path, text, after[path])
			}
		}
		if strings.Contains(after[path], "controller-runtime") || strings.Contains(report, path+":") {
			t.Errorf("%s:\n%s\nreport:\n%s", path, after[path], report)
		}
	}
}

// TestMigrateFlags: the manifests give the program no flag that it does not have.
func TestMigrateFlags(t *testing.T) {
	const patch = "config/default/manager_config_patch.yaml"
	const before = `apiVersion: apps/v1
kind: Deployment
spec:
  template:
    spec:
      containers:
      - name: proxy
        args:
        - --upstream=x
      - name: manager
        args:
        - "--zap-log-level=2"
        - --zap-devel
        - --zap-encoder=json # for the collector
        - --health-probe-bind-address=:8081
        - --feature-gates=A=true
        - --kubeconfig=/mine
`
	_, after, report := moved(t, edits{
		patch: {before},
		"config/debug/level_patch.yaml": {
			"- op: add\n  path: /x\n  value: --zap-devel=true\n- op: add\n  path: /x\n  value: --mine\n",
		},
	})
	for path, want := range map[string]string{
		patch: "        - \"--v=2\"\n        - --v=0 # for the collector\n" +
			"        - --health-probe-bind-address=:8081\n        - --feature-gates=A=true\n" +
			"        - --kubeconfig=/mine\n",
		"config/debug/level_patch.yaml": "  value: --v=0\n- op: add\n  path: /x\n  value: --mine\n",
	} {
		if !strings.HasSuffix(after[path], want) {
			t.Errorf("%s:\n%s", path, after[path])
		}
	}
	for _, want := range []string{
		patch + ": the program has no flag --feature-gates", "patch.yaml: the program has no flag --mine",
		"remove it, and set KUBECONFIG in the environment",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("%q is not in the report:\n%s", want, report)
		}
	}
	if n := strings.Count(report, "the program has no flag"); n != 3 {
		t.Errorf("%d flags are listed, want 3:\n%s", n, report)
	}
	const names = "the flags come from config/manager/manager.yaml"
	if main := after["cmd/main.go"]; strings.Count(main, names) != 1 || !strings.Contains(main, "\t\"fmt\"\n") {
		t.Errorf("main.go does not name the manifest:\n%s", main)
	}
	_, after, _ = moved(t, edits{"cmd/main.go": {"\tflag.Parse()\n", "\tflag.Usage = mine\n\tflag.Parse()\n"}})
	if main := after["cmd/main.go"]; strings.Contains(main, names) {
		t.Errorf("the usage is not the project's own:\n%s", main)
	}
}

// TestMigrateForms: statements of projects that differ from those of kubebuilder's templates. What uses a package that
// is left stays whole.
func TestMigrateForms(t *testing.T) {
	const setLogger = "\tctrl.SetLogger(zap.New(zap.UseFlagOptions(&opts)))\n"
	const logger = "\tlogger := zap.New(zap.UseFlagOptions(&opts))\n\tctrl.SetLogger(logger)\n" +
		"\tif enableLeaderElection {\n\t\tlogger.Info(\"one of several\")\n\t}\n"
	const options = "\topts := zap.Options{\n\t\tDevelopment: true,\n\t}\n"
	const mine = "\tmine.Options{HealthProbeBindAddress: probeAddr, LeaderElection: false}.check()\n"
	const id = "\t\tLeaderElectionID:       \"80807133.example.com\",\n"
	const namespaces = `func setupCacheNamespaces(namespaces string) cache.Options {
	defaultNamespaces := make(map[string]cache.Config)
	for ns := range strings.SplitSeq(namespaces, ",") {
		defaultNamespaces[strings.TrimSpace(ns)] = cache.Config{}
	}
	return cache.Options{
		DefaultNamespaces: defaultNamespaces,
	}
}

`
	for name, c := range map[string]struct {
		edit       []string
		want, gone []string
	}{
		"a logger of its own": {
			[]string{options, "\topts := zap.Options{}\n", setLogger, logger},
			[]string{
				"\topts := zap.Options{}\n\topts.BindFlags(flag.CommandLine)\n\tflag.Usage = func() {",
				"\n\tflag.Parse()\n", logger, "log/zap\"",
			},
			[]string{"klog"},
		},
		"options of zap": {
			[]string{
				options, "\topts := zap.Options{\n\t\tLevel: zapcore.InfoLevel,\n\t}\n",
				"\t\"k8s.io/apimachinery/pkg/runtime\"\n",
				"\t\"go.uber.org/zap/zapcore\"\n\t\"k8s.io/apimachinery/pkg/runtime\"\n",
			},
			[]string{"klog.InitFlags(nil)"},
			[]string{"zap"},
		},
		"options of the webhooks in the call": {
			[]string{
				"webhookServerOptions := webhook.Options{", "webhookServer := webhook.NewServer(webhook.Options{",
				"CertDir: webhookCertPath,\n\t}\n\twebhookServer := webhook.NewServer(webhookServerOptions)\n",
				"CertDir: webhookCertPath,\n\t})\n",
			},
			[]string{
				"\twebhookServerOptions := webhook.Options{\n\t\tTLSOpts: tlsOpts,\n" +
					"\t\tCertDir: webhookCertPath,\n\t}\n",
			},
			[]string{"NewServer"},
		},
		"a remark on the filter": {
			[]string{
				"filters.WithAuthenticationAndAuthorization\n",
				"filters.WithAuthenticationAndAuthorization\n\n\t\t// A certificate is made at the start.\n",
			},
			nil,
			[]string{"FilterProvider"},
		},
		"the namespace of the lease": {
			[]string{id, id + "\t\tLeaderElectionNamespace: probeAddr,\n\t\tPprofBindAddress: probeAddr,\n"},
			[]string{
				`Namespace: cmp.Or(probeAddr, os.Getenv("POD_NAMESPACE")),`, "\t\"cmp\"\n", "DebugAddr: ",
			},
			[]string{"LeaderElectionNamespace", "LeaderElectionID"},
		},
		"options of others": {
			[]string{"\tmgr, err := ctrl.NewManager(", mine + "\tmgr, err := ctrl.NewManager("},
			[]string{mine, "\t\tHealthAddr: "},
			[]string{"LeaderElectionID: "},
		},
		"some namespaces": {
			[]string{"func main() {", namespaces + "func main() {\n\to.Cache = setupCacheNamespaces(watched)"},
			[]string{
				"(namespaces string) (o informer.FactoryOptions) {\n" +
					"\tfor ns := range strings.SplitSeq(namespaces, \",\") {\n" +
					"\t\to.Namespaces = append(o.Namespaces, strings.TrimSpace(ns))\n\t}\n\treturn o\n}\n",
				"\to.Informers = setupCacheNamespaces(watched)\n",
				"\t\"github.com/flyball-dev/flyball/informer\"\n",
			},
			[]string{"cache."},
		},
		"durations of the lease": {
			[]string{id, "\t\tRetryPeriod: &period,\n" + id},
			[]string{"\t\tLeaderElection: manager.LeaderElection{\n", "\t\tRetryPeriod: "},
			[]string{"LeaderElectionID"},
		},
		"a lease without metrics": {
			[]string{"\t\tMetrics:                metricsServerOptions,\n", "", "metricsServerOptions", "more"},
			[]string{"\t\"github.com/flyball-dev/flyball/manager\"\n"},
			nil,
		},
		"other names of packages": {
			[]string{
				"\tctrl \"sigs.k8s.io/controller-runtime\"\n",
				"\tcr \"sigs.k8s.io/controller-runtime\"\n" +
					"\t\"sigs.k8s.io/controller-runtime/pkg/client/config\"\n" +
					"\t\"sigs.k8s.io/controller-runtime/pkg/manager/signals\"\n",
				"ctrl.GetConfigOrDie()", "config.GetConfigOrDie()", "ctrl.SetupSignal", "signals.SetupSignal",
				"ctrl.", "cr.",
			},
			[]string{
				"\tcr \"github.com/flyball-dev/flyball/manager/ctrl\"\n", "\tconfig \"github.com/flyball-dev/flyball/",
				"\tsignals \"github.com/flyball-dev/flyball/manager/ctrl\"\n",
			},
			nil,
		},
	} {
		before, after, report := moved(t, edits{"cmd/main.go": c.edit})
		main := after["cmd/main.go"]
		for _, want := range c.want {
			if !strings.Contains(main, want) {
				t.Errorf("%s: there is no %q", name, want)
			}
		}
		for _, gone := range c.gone {
			if strings.Contains(main, gone) {
				t.Errorf("%s: %s is left", name, gone)
			}
		}
		if t.Failed() {
			t.Fatalf("%s: before:\n%s\nafter:\n%s\nreport:\n%s", name, before["cmd/main.go"], main, report)
		}
	}
	const path, suite = "internal/controller/suite_test.go", `package controller

import (
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func begin() {
	logf.SetLogger(zap.New(zap.UseDevMode(true), zap.WriteTo(GinkgoWriter)))
	start(ctrl.Options{
		Metrics: server.Options{
			BindAddress: "0",
		},
	})
}
`
	_, after, _ := moved(t, edits{path: {suite}})
	if text := after[path]; strings.Contains(text, "controller-runtime") || strings.Contains(text, "server.Options") ||
		!strings.Contains(text, "\tlogf.SetLogger(GinkgoLogr)\n") {
		t.Errorf("%s:\n%s", path, text)
	}
	_, after, _ = moved(t, edits{path: {strings.Replace(suite, "(GinkgoWriter", "(ginkgo.GinkgoWriter", 1)}})
	if text := after[path]; !strings.Contains(text, "\tlogf.SetLogger(ginkgo.GinkgoLogr)\n") {
		t.Errorf("%s:\n%s", path, text)
	}
}

// TestMigrateGoMod: all modules of Kubernetes have one version, and what is left of controller-runtime goes with it.
func TestMigrateGoMod(t *testing.T) {
	_, after, _ := moved(t, edits{"go.mod": {
		"k8s.io/api v0.37.2\n", "k8s.io/api v0.99.1\n\tk8s.io/kubectl v0.36.1\n" +
			"\tk8s.io/utils v0.0.0-20260707023825-cf1189d6abe3\n",
		"controller-runtime v0.25.2", "controller-runtime v0.24.1",
	}})
	for _, want := range []string{
		"k8s.io/api v0.99.1", "k8s.io/kubectl v0.37.2", "k8s.io/utils v0.0.0-2026",
		"sigs.k8s.io/controller-runtime " + theirVersion, "github.com/flyball-dev/flyball v0.0.0",
	} {
		if !strings.Contains(after["go.mod"], want) {
			t.Errorf("there is no %s in\n%s", want, after["go.mod"])
		}
	}
	text, err := os.ReadFile("../../../interop/controllerruntime/go.mod")
	if err != nil || !strings.Contains(string(text), "sigs.k8s.io/controller-runtime "+theirVersion+"\n") {
		t.Errorf("interop/controllerruntime does not require controller-runtime %s: %v", theirVersion, err)
	}
}

// TestMigrateHints: the report says what there is in the place of a name, as the documentation does.
func TestMigrateHints(t *testing.T) {
	const file = "internal/controller/rest.go"
	const rest = `package controller

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

var p = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})

var h = handler.Funcs{}

func serve(o *ctrl.Options) { o.Metrics.ExtraHandlers = nil }

func lease(o *ctrl.Options) { o.RetryPeriod = new(time.Duration) }

func name(o *ctrl.Options) { o.LeaderElectionNamespace = "mine" }

func hooks(o *ctrl.Options) { o.WebhookServer = nil }

func live(o *ctrl.Options) { o.LivenessEndpointName = "/live" }

var apply = &client.PatchOptions{FieldManager: "mine"}

var more = []any{handler.Funcs{}, controller.New("mine"), fake.NewClientBuilder(), metrics.Registry}
`
	_, after, report := moved(t, edits{file: {rest}})
	for _, want := range []string{
		file + `:9: what takes the place of "sigs.k8s.io/controller-runtime/pkg/client/fake" is yours to decide: ` +
			"`localapi.NewTest",
		file + ":14: var h = handler.Funcs{} is yours to decide: write `builder.HandlerFuncs{",
		"= nil } is yours to decide: write `AddMetricsServerExtraHandler`",
		"new(time.Duration) } is yours to decide: write `ctrl.Options{LeaderElection: manager.LeaderElection{Options: ",
		"\"mine\" } is yours to decide: write `ctrl.Options{LeaderElection: manager.LeaderElection{Enabled: ",
		"= nil } is yours to decide: write `ctrl.Options{Webhook: options}`",
		"\"/live\" } is yours to decide: write none: `/readyz`;",
		"\"mine\"} is yours to decide: write `client.WriteOptions{",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("%q is not in the report:\n%s", want, report)
		}
	}
	if n := strings.Count(report, file+":"); n != 8 {
		t.Errorf("%d notes on %s, want 8:\n%s", n, file, report)
	}
	_, code, _ := strings.Cut(rest, ")\n\n")
	if !strings.HasSuffix(after[file], code) ||
		!strings.Contains(after[file], `"github.com/flyball-dev/flyball/manager/ctrl/metrics"`) {
		t.Errorf("%s:\n%s", file, after[file])
	}
	page, err := os.ReadFile("../../../docs/coming-from-controller-runtime.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, idiom := range idioms {
		if !strings.Contains(string(page), " | "+idiom.to) {
			t.Errorf("the table of idioms does not have %s", idiom.to)
		}
	}
}
