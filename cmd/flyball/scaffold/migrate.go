package scaffold

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/version"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// MigrateOptions configures [Migrate].
type MigrateOptions struct {
	// Dir is the root of a project of kubebuilder.
	Dir string
	// Flyball and Source are those of InitOptions.
	Flyball, Source string
	// Force moves a project whose work is not committed to git.
	Force bool
	// FetchDeps runs go mod tidy at the end.
	FetchDeps bool
	// Out receives a report.
	Out io.Writer
}

// Migrate moves a project of kubebuilder to this framework: imports, the manager of cmd/main.go, suites of envtest, and
// manifests. What it does not know stays as it is, and is listed. Errors: no project of kubebuilder; work that is not
// committed. Nothing is written then.
func Migrate(ctx context.Context, o MigrateOptions) error {
	source := InitOptions{Flyball: o.Flyball, Source: o.Source}
	if err := source.checkSource(); err != nil {
		return err
	}
	p, err := readProject(o.Dir)
	if err != nil {
		return err
	}
	if !p.ofKubebuilder() {
		return errors.New("PROJECT does not have the layout of kubebuilder: there is nothing to migrate")
	}
	if err := checkGo(ctx, o.Dir, true); err != nil {
		return err
	}
	if !o.Force {
		if err := checkCommitted(ctx, o.Dir); err != nil {
			return err
		}
	}
	c := &change{dir: o.Dir, moves: true}
	c.noteSource(source.Source)
	err = cmp.Or(rewriteAll(c), moveDeployment(c), moveFlags(c), c.moveGoMod(ctx, o.Flyball, source.Source))
	if err != nil {
		return err
	}
	p.fields["layout"] = []any{layout}
	return c.finish(ctx, p, o.FetchDeps, o.Out, "Next: git diff, go vet ./... and make test")
}

// checkCommitted returns an error if git tells of changes below dir that are not committed: the edits could not be told
// from them. A folder outside of a repository is as it is.
func checkCommitted(ctx context.Context, dir string) error {
	command := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ".")
	command.Dir = dir
	text, err := command.Output()
	if err != nil {
		return ctx.Err() // no git, or no repository
	}
	if first, _, _ := strings.Cut(string(text), "\n"); first != "" {
		return fmt.Errorf("there is work that is not committed (%s): commit it, so that git diff shows what this "+
			"command does, or use --force", strings.TrimSpace(first))
	}
	return nil
}

// rewriteAll rewrites the files of a project.
func rewriteAll(c *change) error {
	_, deployed, err := c.read(deploymentPath)
	if err != nil {
		return err
	}
	return c.walk(func(path string) error {
		switch {
		case strings.HasSuffix(path, ".go"):
			scheme := schemeRewrites(filepath.Join(c.dir, filepath.Dir(path)))
			return c.rewrite(path, func(text string) string {
				if moved := scheme.apply(text); moved != text {
					text = addImports(dropImports(moved))
				}
				text = rewriteGo(text)
				if path == "cmd/main.go" && deployed && !strings.Contains(text, "flag.Usage = ") {
					text = addImports(usageRewrites.apply(text))
				}
				return text
			})
		case path == "Makefile":
			return c.rewrite(path, func(text string) string { return makefileRewrites.apply(text) })
		}
		return nil
	})
}

// walk calls f for the regular files of the project's module.
func (c *change) walk(f func(path string) error) error {
	return filepath.WalkDir(c.dir, func(full string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && full != c.dir && foreign(full):
			return filepath.SkipDir
		case d.Type().IsRegular():
			rel, _ := filepath.Rel(c.dir, full)
			return f(filepath.ToSlash(rel))
		}
		return nil
	})
}

// foreign reports whether a folder has files that are not of the project's module, as the go command sees it.
func foreign(dir string) bool {
	name := filepath.Base(dir)
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil || name == "bin" || name == "vendor" || name == "testdata" || strings.HasPrefix(name, ".") ||
		strings.HasPrefix(name, "_")
}

// rewrite rewrites one file. A file whose result is not Go stays as it is, and is listed.
func (c *change) rewrite(path string, edit func(string) string) error {
	old, err := os.ReadFile(filepath.Join(c.dir, filepath.FromSlash(path)))
	if err != nil {
		return err
	}
	text := edit(string(old))
	if text != string(old) {
		result, err := finish(path, text)
		if err != nil {
			c.notes = append(c.notes, fmt.Sprintf("%v: the file is left as it was; edit it yourself", err))
			return nil
		}
		c.write(path, old, result)
		text = string(result)
	}
	if strings.HasSuffix(path, ".go") {
		c.noteRest(path, text)
	}
	return nil
}

// theirPackage is an import of controller-runtime, but for its tools.
var theirPackage = regexp.MustCompile(theirs + `(?:/(pkg/[^"]*))?"`)

// hints end a note on a package of controller-runtime that has no counterpart: what there is instead.
var hints = map[string]string{
	"pkg/certwatcher":        ": Serving.CertFile and Serving.KeyFile of ctrl.Options are read again when they change",
	"pkg/client/fake":        ": `localapi.NewTest(t, objects...)`",
	"pkg/client/interceptor": ": `Intercept` of `localapi.NewTest`",
	"pkg/log/zap":            ": `ctrl.SetLogger` with a logger of your own, or nothing: klog writes to standard error",
	"pkg/cluster":            ": package `multicluster`, or a second `ctrl.NewManager`, which `mgr.Add` runs",
	"pkg/config":             ": nothing takes the place of SkipNameValidation: names are unique in a manager only",
	"pkg/metrics/filters":    ": Serving.Review of ctrl.Options asks the API server who may read metrics",
	"pkg/metrics/server":     ": `ctrl.Options{Metrics: metrics.Registry, MetricsAddr: addr}`",
	"pkg/scheme":             ": `runtime.NewSchemeBuilder` of apimachinery",
}

// idioms are names that packages with a counterpart do not have: what is written in their place.
var idioms = newRewrites(
	`\bcache\.(?:Options|ByObject)\b`,
	"`ctrl.Options{Caches: []client.CacheOf{{Object: &corev1.Pod{}, Informer: informer.InformerOptions{…}}}}`",
	`\bcontroller\.New(?:Typed)?(?:Unmanaged)?\(`, "`ctrl.NewControllerManagedBy(mgr).Named(name)`",
	`\bclient\.NewWithWatch\b`, "an informer: `informer.For` with `mgr.Informers()`",
	`\bGetInformer\(`, "`informer.For` with `mgr.Informers()`",
	`\bclient\.(?:Create|Update|Patch)Options\b`, "`client.WriteOptions{…}`, whose `Force` and `DryRun` are booleans",
	`\bclient\.NewNamespacedClient\b`, "the namespace in the objects and in `client.InNamespace(namespace)`",
	`\bclient\.NewDryRunClient\b`, "`client.Options{DryRun: true}`, or `client.DryRunAll` in a call",
	`\bclient\.WithFieldOwner\b`, "`client.Options{FieldManager: owner}`, or `client.FieldOwner(owner)` in a call",
	`\bhandler\.(?:Typed)?Funcs\b`,
	"`builder.HandlerFuncs{OnAdd: …}`; the queue is a `reconcile.Enqueuer[ctrl.Request]`",
	`\bmetrics\.Registry\.Gather\(`, "a request to the registry, which is an `http.Handler`",
	`\bLeaderElection(?:ID|Namespace)(?: =|:) `,
	"`ctrl.Options{LeaderElection: manager.LeaderElection{Enabled: true, Name: id}}`",
	`\bHealthProbeBindAddress(?: =|:) `, "`ctrl.Options{HealthAddr: addr}`",
	`\b(?:LeaseDuration|RenewDeadline|RetryPeriod)(?: =|:) `,
	"`ctrl.Options{LeaderElection: manager.LeaderElection{Options: leader.Options{…}}}`, without pointers",
	`\bWebhookServer(?: =|:) `, "`ctrl.Options{Webhook: options}`",
	`\bStartedChecker\(`, "nothing: `/readyz` answers for the webhooks",
	`\b(?:Readi|Live)nessEndpointName(?: =|:) `, "none: `/readyz`; `/livez` and `/healthz`",
	`\bDefaultNamespaces\b`, "`Informers.Namespaces`; other settings for one of them: `Caches`",
	`\bExtraHandlers\b`, "`AddMetricsServerExtraHandler`",
)

// noteRest lists the lines that need what this framework does not have.
func (c *change) noteRest(path, text string) {
	noted := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		note := func(format string, args ...any) {
			c.notes = append(c.notes, fmt.Sprintf("%s:%d: %s", path, i+1, fmt.Sprintf(format, args...)))
		}
		switch m := theirPackage.FindStringSubmatch(line); {
		case strings.HasPrefix(line, "//"):
		case m != nil:
			note("what takes the place of %s is yours to decide%s", line, hints[m[1]])
		case strings.Contains(line, "metricsServerOptions"):
			note("%s is not what kubebuilder has written, and is left: the fields MetricsAddr and Serving of "+
				"ctrl.Options take the place of metricsServerOptions", line)
		default:
			for _, idiom := range idioms {
				name := idiom.from.FindString(line)
				if name == "" || noted[name] {
					continue
				}
				pkg, _, ok := strings.Cut(name, ".")
				if !ok {
					pkg = "manager/ctrl"
				}
				if regexp.MustCompile(`flyball/(?:manager/ctrl/)?` + pkg + `"`).MatchString(text) {
					noted[name] = true // once in a file
					note("%s is yours to decide: write %s", line, idiom.to)
				}
			}
		}
	}
}

// own is the path of this module.
const own = "github.com/flyball-dev/flyball"

// theirVersion is the version of controller-runtime that goes with our versions of Kubernetes' modules.
const theirVersion = "v0.25.2"

// numbered is a requirement of controller-runtime, or of a module that is released with Kubernetes and has its number.
var numbered = regexp.MustCompile(
	`(?m)^\s*(?:require )?(k8s\.io/[\w-]+|sigs\.k8s\.io/controller-runtime) (v0\.[1-9]\S*)`)

// moveGoMod requires this module. All modules of Kubernetes get one version, also those that this module does not need,
// and controller-runtime the version that goes with it. go mod tidy drops controller-runtime where nothing imports it.
func (c *change) moveGoMod(ctx context.Context, flyball, source string) error {
	old, _, err := c.read("go.mod")
	if err != nil {
		return err
	}
	args := []string{"mod", "edit", "-print"}
	if source != "" {
		flyball = "v0.0.0"
		args = append(args, "-replace="+own+"="+source)
	}
	args = append(args, "-require="+own+"@"+flyball)
	needed := numbered.FindStringSubmatch(template("go.mod.txt"))[2]
	for _, module := range numbered.FindAllStringSubmatch(string(old), -1) {
		at := needed
		if strings.HasPrefix(module[1], "sigs.") {
			at = theirVersion
		}
		if version.Compare(numberOf(module[2]), numberOf(at)) < 0 {
			args = append(args, "-require="+module[1]+"@"+at)
		}
	}
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = c.dir
	text, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go mod edit: %w\n%s", err, bytes.TrimSpace(text))
	}
	c.write("go.mod", old, text)
	return nil
}

// numberOf makes a version of Go of another one, to compare it.
func numberOf(v string) string { return strings.Replace(v, "v0.", "go1.", 1) }

// rewrite replaces what a regular expression matches, outside of comments.
type rewrite struct {
	from *regexp.Regexp
	to   string
}

// rewrites are applied in order.
type rewrites []rewrite

// newRewrites compiles pairs of an expression and its replacement.
func newRewrites(pairs ...string) (all rewrites) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, rewrite{regexp.MustCompile(pairs[i]), pairs[i+1]})
	}
	return all
}

func (all rewrites) apply(text string) string {
	for _, r := range all {
		text, _ = r.apply(text)
	}
	return text
}

// apply returns the result, and whether anything matched. A match that begins in a comment is left.
func (r rewrite) apply(text string) (result string, matched bool) {
	var out []byte
	end := 0
	for _, at := range r.from.FindAllStringSubmatchIndex(text, -1) {
		before := text[strings.LastIndex(text[:at[0]], "\n")+1 : at[0]]
		if strings.HasPrefix(strings.TrimSpace(before), "//") || strings.Contains(before, " // ") {
			continue
		}
		out = append(out, text[end:at[0]]...)
		out = r.from.ExpandString(out, r.to, text, at)
		end, matched = at[1], true
	}
	return string(append(out, text[end:]...)), matched
}

const theirs = `"sigs\.k8s\.io/controller-runtime`

// goRewrites are for Go files: imports first, then what has another form.
var goRewrites = newRewrites(
	`(?m)^(\s*(?:import )?)ctrl `+theirs+`"`, `$1"github.com/flyball-dev/flyball/manager/ctrl"`,
	`(?m)^(\s*(?:import )?\w+ )`+theirs+`"`, `$1"github.com/flyball-dev/flyball/manager/ctrl"`,
	`(?m)^(\s*(?:import )?)`+theirs+`"`, `$1 controllerruntime "github.com/flyball-dev/flyball/manager/ctrl"`,
	`(?m)^(\s*)`+theirs+`/pkg/(?:client/(config)|manager/(signals))"`,
	`$1$2$3 "github.com/flyball-dev/flyball/manager/ctrl"`,
	`(?m)^(\s*\w+ )`+theirs+`/pkg/(?:client/config|manager/signals)"`,
	`$1"github.com/flyball-dev/flyball/manager/ctrl"`,
	theirs+`/pkg/client"`, `"github.com/flyball-dev/flyball/client"`,
	theirs+`/pkg/controller/controllerutil"`, `"github.com/flyball-dev/flyball/client/controllerutil"`,
	theirs+`/pkg/(reconcile|handler|predicate|source|controller|cache|healthz|log|manager|metrics)"`,
	`"github.com/flyball-dev/flyball/manager/ctrl/$1"`,
	theirs+`/pkg/client/apiutil"`, `"github.com/flyball-dev/flyball/manager/ctrl/apiutil"`,
	theirs+`/pkg/event"`, `"github.com/flyball-dev/flyball/reconcile/event"`,
	theirs+`/pkg/(builder|webhook|webhook/admission|webhook/conversion)"`,
	`"github.com/flyball-dev/flyball/manager/$1"`,
	theirs+`/pkg/conversion"`, `"github.com/flyball-dev/flyball/manager/webhook/conversion"`,
	theirs+`/pkg/envtest"`, `"github.com/flyball-dev/flyball/localapi/envtest"`,

	`(?m)^(\t+)webhookServer := webhook\.NewServer\((webhook\.Options\{\n(?:\t.*\n)*?\t+\})\)\n`,
	"${1}webhookServerOptions := $2\n",
	`(?m)^[ \t]*webhookServer := webhook\.NewServer\(webhookServerOptions\)\n\n?`, "",
	`(?m)\bWebhookServer:(\s+)webhookServer,`, `Webhook:$1 webhookServerOptions,`,
	`(?s)\bWebhookServer:(\s+)webhook\.NewServer\((webhook\.Options\{.*?\n\t\t\})\),`, `Webhook:$1$2,`,
	`(?m)^\s*Metrics:\s+\w+\.Options\{\s*BindAddress:\s*"0",?\s*\},\n`, "",

	`(?m)^(func setupCacheNamespaces\(\w+ string\)) cache\.Options \{\n\t\w+ := make\(map\[string\]cache\.Config\)\n`+
		`(\tfor .*\n)\t\t\w+\[(.*)\] = cache\.Config\{\}\n\t\}\n\treturn cache\.Options\{\n.*\n\t\}\n\}\n`,
	"$1 (o informer.FactoryOptions) {\n$2\t\to.Namespaces = append(o.Namespaces, $3)\n\t}\n\treturn o\n}\n",
	`\bCache = setupCacheNamespaces\(`, "Informers = setupCacheNamespaces(",
)

// optionRewrites are for the literals of a manager's options.
var optionRewrites = newRewrites(
	`\bHealthProbeBindAddress:`, `HealthAddr:`,
	`\bPprofBindAddress:`, `DebugAddr:`,
	`(?m)^\s*LeaderElection:\s+false,\n`, "",
)

// zapRewrites are for the logger. They are made together or not at all, so that a logger of the project's own stays.
var zapRewrites = newRewrites(
	`(?m)^(\s*(?:ctrl|logf?)\.SetLogger\()zap\.New\(.*\(((?:ginkgo\.)?)GinkgoWriter.*\n`, "${1}${2}GinkgoLogr)\n",
	`(?m)^\topts := zap\.Options\{(?:\n(?:\t\t.*\n)*\t)?\}\n`, "",
	`\bopts\.BindFlags\(flag\.CommandLine\)`, `klog.InitFlags(nil)`,
	`(?m)^[ \t]*(?:ctrl|logf?)\.SetLogger\(zap\.New\(.*\)\)\n\n?`, "",
)

// metricsRewrites are for the options of the metrics server in cmd/main.go. They match the statements that kubebuilder
// writes, and no other: what users have written between these stays. Without the first one, none is made. All listeners
// of our manager share their certificate, so the probes use TLS too.
var metricsRewrites = newRewrites(
	`(?m)(?:^\t// Metrics endpoint is enabled in[^\n]*\n(?:\t//[^\n]*\n)*)?`+
		`^\tmetricsServerOptions := metricsserver\.Options\{\n`+
		`(?:\t\t(?://.*|BindAddress: +metricsAddr,|SecureServing: +secureMetrics,|TLSOpts: +tlsOpts,)\n)+\t\}\n`,
	"\t// Health and metrics are served by TLS, and metrics only to those whom the API server allows to read them.\n"+
		"\tserving := manager.Serving{\nInsecure: !secureMetrics, Review: secureMetrics,\n"+
		"SelfSigned: secureMetrics && len(metricsCertPath) == 0,\n}\n",
	`(?m)^\tif secureMetrics \{\n(?:\t\t//.*\n)*`+
		`\t\tmetricsServerOptions\.FilterProvider = filters\.WithAuthenticationAndAuthorization\n`+
		`(?:\n?(?:\t\t//.*\n)+)?\t\}\n\n?`, "",
	`(?m)(?:^\t// If the certificate is not specified.*\n(?:\t//.*\n)*)?^(\tif len\(metricsCertPath\) > 0 \{\n)`+
		`((?:\t\tsetupLog\.Info\("Initializing metrics certificate watcher[^\n]*\n(?:\t\t\t[^\n]*\n)*\n?)?)`+
		`\t\tmetricsServerOptions\.CertDir = metricsCertPath\n`+
		`\t\tmetricsServerOptions\.CertName = metricsCertName\n`+
		`\t\tmetricsServerOptions\.KeyName = metricsCertKey\n\t\}\n`,
	"$1$2\t\tserving.CertFile = filepath.Join(metricsCertPath, metricsCertName)\n"+
		"\t\tserving.KeyFile = filepath.Join(metricsCertPath, metricsCertKey)\n\t}\n",
	`(?m)\bMetrics:(\s+)metricsServerOptions,`, "Metrics:$1 metrics.Registry,\n"+
		"MetricsAddr: metricsAddr,\nServing: serving,",
)

// rewriteGo rewrites a Go file that imports controller-runtime.
func rewriteGo(text string) string {
	if !regexp.MustCompile(`(?m)^(import)?\s*\w*\s*` + theirs).MatchString(text) {
		return text
	}
	if _, ok := metricsRewrites[0].apply(text); ok {
		text = metricsRewrites.apply(text)
		if strings.Count(text, "metricsCertPath") == 1 { // of a kubebuilder that has no such flag
			text = strings.Replace(text, " && len(metricsCertPath) == 0", "", 1)
		}
	}
	text = moveOptions(goRewrites.apply(text))
	if moved := zapRewrites.apply(text); !uses(moved, "zap") {
		text = moved
	}
	return addImports(dropImports(text))
}

// usageRewrites make a program print which manifests its flags come from, above the flags that it has. It prints them
// for an unknown flag, too.
var usageRewrites = newRewrites(`(?m)^\t(p?flag)\.Parse\(\)\n`,
	`	$1.Usage = func() { // for --help, and for an unknown flag
		fmt.Fprintln(os.Stderr, "In a Pod, the flags come from config/manager/manager.yaml and its patches, "+
			"such as those in config/default.")
		$1.PrintDefaults()
	}
	$1.Parse()
`)

// moveOptions moves fields of the options of a manager. Other types may have fields of these names.
func moveOptions(text string) string {
	p, err := parseGo("", text)
	if err != nil {
		return text // rewrite lists it
	}
	types := map[string]bool{}
	for _, s := range p.Imports {
		name, of := importName(s)
		types[name+".Options"] = of == own+"/manager/ctrl" || of == own+"/manager/ctrl/manager"
	}
	moved := text
	ast.Inspect(p.File, func(n ast.Node) bool {
		if literal, ok := n.(*ast.CompositeLit); ok {
			old := text[p.at(literal.Pos()):p.at(literal.End())]
			if name, _, _ := strings.Cut(old, "{"); types[name] {
				moved = strings.Replace(moved, old, moveLeaderElection(optionRewrites.apply(old)), 1)
			}
		}
		return true
	})
	return moved
}

var leaderField = regexp.MustCompile(
	`(?m)^[ \t]*LeaderElection(|ID|Namespace|ReleaseOnCancel):[ \t]+(.+),\n`)

// moveLeaderElection makes one field of those in a literal. The lease is always released at the end.
func moveLeaderElection(literal string) string {
	all := map[string]string{}
	for _, field := range leaderField.FindAllStringSubmatch(literal, -1) {
		all[field[1]] = field[2]
	}
	if all[""] == "" || all["ID"] == "" {
		return literal
	}
	namespace := `os.Getenv("POD_NAMESPACE")`
	if all["Namespace"] != "" { // which may be a flag that is empty by default
		namespace = "cmp.Or(" + all["Namespace"] + ", " + namespace + ")"
	}
	moved := "LeaderElection: manager.LeaderElection{\nEnabled: " + all[""] + ", Name: " + all["ID"] +
		",\nNamespace: " + namespace + ",\n},\n"
	return leaderField.ReplaceAllStringFunc(literal, func(string) (first string) {
		first, moved = moved, ""
		return first
	})
}

var (
	ourImport   = regexp.MustCompile(`(?m)^\t(?:\w+ )?"github\.com/flyball-dev/.*\n`)
	commentLine = regexp.MustCompile(`(?m)^\s*//.*$`)
	movedPath   = regexp.MustCompile(`^(?:sigs\.k8s\.io/controller-runtime|go\.uber\.org|github\.com/flyball-dev)/`)
)

// uses reports whether a file uses a package that it imports by this name.
func uses(text, name string) bool {
	return regexp.MustCompile(`(?:^|[^.\w])` + name + `\.\w`).MatchString(commentLine.ReplaceAllString(text, ""))
}

// dropImports drops the imports that rewrites have made needless.
func dropImports(text string) string {
	return importLine.ReplaceAllStringFunc(text, func(line string) string {
		m := importLine.FindStringSubmatch(line)
		name := cmp.Or(m[1], path.Base(m[2]))
		if !movedPath.MatchString(m[2]) || name == "_" || uses(text, name) {
			return line
		}
		return ""
	})
}

// addImports adds the imports that rewrites have made necessary.
func addImports(text string) string {
	for _, i := range []struct{ use, spec string }{
		{`klog.`, `"k8s.io/klog/v2"`},
		{`informer.FactoryOptions`, `"github.com/flyball-dev/flyball/informer"`},
		{`metrics.Registry`, `"github.com/flyball-dev/flyball/manager/ctrl/metrics"`},
		{`manager.Serving{`, `"github.com/flyball-dev/flyball/manager"`},
		{`manager.LeaderElection{`, `"github.com/flyball-dev/flyball/manager"`},
		{`os.Getenv("POD_NAMESPACE")`, `"os"`},
		{`cmp.Or(`, `"cmp"`},
		{`fmt.Fprintln(os.Stderr, "In a Pod`, `"fmt"`},
		{`filepath.Join(metrics`, `"path/filepath"`},
		{`runtime.Scheme) error {`, `"k8s.io/apimachinery/pkg/runtime"`},
		{`metav1.AddToGroupVersion(`, `metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"`},
	} {
		needed := regexp.MustCompile(`[^.\w]` + regexp.QuoteMeta(i.use)).MatchString(text)
		if needed && !strings.Contains(text, "\t"+i.spec+"\n") {
			before := "import (\n"
			if ours := ourImport.FindString(text); strings.Contains(i.spec, ".") && ours != "" {
				before = ours
			}
			text = strings.Replace(text, before, before+"\t"+i.spec+"\n", 1)
		}
	}
	return text
}

// makefileRewrites free the tests from the downloads of envtest.
var makefileRewrites = newRewrites(
	`(?m)^(test:.*) setup-envtest\b`, `$1`,
	`KUBEBUILDER_ASSETS=.*?-p path\)" go test`, `go test`,
)
