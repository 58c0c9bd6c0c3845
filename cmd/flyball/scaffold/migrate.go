package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
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
	if !strings.Contains(fmt.Sprint(p.fields["layout"]), "kubebuilder") {
		return errors.New("PROJECT does not have the layout of kubebuilder: there is nothing to migrate")
	}
	if err := checkGo(ctx, o.Dir); err != nil {
		return err
	}
	if !o.Force {
		if err := checkCommitted(ctx, o.Dir); err != nil {
			return err
		}
	}
	c := &change{dir: o.Dir}
	c.noteSource(source.Source)
	if err := rewriteAll(c); err != nil {
		return err
	}
	if err := moveDeployment(c); err != nil {
		return err
	}
	p.fields["layout"] = []any{layout}
	if err := p.save(c); err != nil {
		return err
	}
	requirement := []string{"-require=github.com/flyball-dev/flyball@" + o.Flyball}
	if source.Source != "" {
		requirement = []string{
			"-require=github.com/flyball-dev/flyball@v0.0.0",
			"-replace=github.com/flyball-dev/flyball=" + source.Source,
		}
	}
	if err := c.editGoMod(ctx, append(requirement, "-droprequire=sigs.k8s.io/controller-runtime")); err != nil {
		return err
	}
	return c.finish(ctx, o.FetchDeps, o.Out, "Next: git diff, go vet ./... and make test")
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
	return filepath.WalkDir(c.dir, func(full string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(c.dir, full)
		path := filepath.ToSlash(rel)
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && foreign(full):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go") && d.Type().IsRegular():
			return c.rewrite(path, rewriteGo)
		case path == "Makefile":
			return c.rewrite(path, func(text string) string { return makefileRewrites.apply(text) })
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
		c.extend(path, old, result)
		text = string(result)
	}
	if strings.HasSuffix(path, ".go") {
		c.noteRest(path, text)
	}
	return nil
}

// noteRest lists the lines that need what this framework does not have.
func (c *change) noteRest(path, text string) {
	for i, line := range strings.Split(text, "\n") {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "//"):
		case strings.Contains(line, `"sigs.k8s.io/controller-runtime`):
			c.notes = append(c.notes, fmt.Sprintf("%s:%d: what takes the place of %s is yours to decide", path, i+1,
				line))
		case strings.Contains(line, "metricsServerOptions"):
			c.notes = append(c.notes, fmt.Sprintf("%s:%d: %s is not what kubebuilder has written, and is left: "+
				"the fields MetricsAddr and Serving of ctrl.Options take the place of metricsServerOptions", path,
				i+1, line))
		}
	}
}

// editGoMod edits a copy of go.mod by go mod edit.
func (c *change) editGoMod(ctx context.Context, flags []string) error {
	old, err := os.ReadFile(filepath.Join(c.dir, "go.mod"))
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "flyball-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	edited := filepath.Join(temp, "go.mod")
	if err := os.WriteFile(edited, old, 0o644); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", append(append([]string{"mod", "edit"}, flags...), edited)...)
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go mod edit: %w\n%s", err, strings.TrimSpace(string(text)))
	}
	text, err := os.ReadFile(edited)
	if err != nil {
		return err
	}
	c.extend("go.mod", old, text)
	return nil
}

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
	`(?m)^(\s*)ctrl `+theirs+`"`, `$1"github.com/flyball-dev/flyball/manager/ctrl"`,
	theirs+`/pkg/client"`, `"github.com/flyball-dev/flyball/client"`,
	theirs+`/pkg/controller/controllerutil"`, `"github.com/flyball-dev/flyball/client/controllerutil"`,
	theirs+`/pkg/reconcile"`, `"github.com/flyball-dev/flyball/reconcile"`,
	theirs+`/pkg/(handler|predicate|source)"`, `"github.com/flyball-dev/flyball/reconcile/$1"`,
	theirs+`/pkg/(builder|webhook|webhook/admission|webhook/conversion)"`, `"github.com/flyball-dev/flyball/manager/$1"`,
	theirs+`/pkg/conversion"`, `"github.com/flyball-dev/flyball/manager/webhook/conversion"`,
	theirs+`/pkg/envtest"`, `"github.com/flyball-dev/flyball/localapi/envtest"`,
	`(?m)^(\s*)(log|logf) `+theirs+`/pkg/log"`, `$1$2 "k8s.io/klog/v2"`,
	`(?m)^(\s*)`+theirs+`/pkg/log"`, `${1}log "k8s.io/klog/v2"`,

	`([( ])ctrl\.Manager\b`, `$1*ctrl.Manager`,
	`\b(logf?)\.Log\b`, `$1.Background()`,
	`\b(logf?)\.IntoContext\(`, `$1.NewContext(`,
	`\bctrl\.Log\b`, `klog.Background()`,
	`\bhandler\.EnqueueRequestsFromMapFunc\(`, `handler.EnqueueMapped(`,
	`\bpredicate\.GenerationChangedPredicate\{\}`, `predicate.GenerationChanged()`,
	`\breconcile\.TerminalError\(`, `reconcile.Terminal(`,

	`(?m)^(\s*)logf\.SetLogger\(zap\.New\(zap\.WriteTo\(GinkgoWriter\).*\n`,
	"${1}logf.LogToStderr(false)\n${1}logf.SetOutput(GinkgoWriter)\n",
	`(?s)\topts := zap\.Options\{.*?\n\t\}\n`, "",
	`opts\.BindFlags\(flag\.CommandLine\)`, `klog.InitFlags(nil)`,
	`(?m)^\s*ctrl\.SetLogger\(zap\.New\(.*\)\)\n`, "",
	`(?m)^\s*webhookServer := webhook\.NewServer\(webhookServerOptions\)\n\n?`, "",
	`(?m)\bWebhookServer:(\s+)webhookServer,`, `Webhook:$1 webhookServerOptions,`,
	`(?s)\bWebhookServer:(\s+)webhook\.NewServer\((webhook\.Options\{.*?\n\t\t\})\),`, `Webhook:$1$2,`,
	`(?m)^\s*Metrics:\s+metricsserver\.Options\{BindAddress: "0"\},\n`, "",
	`\bHealthProbeBindAddress:`, `HealthAddr:`,
	`\bLeaderElection:\s+(\w+),\s*LeaderElectionID:\s+("[^"]*"),`,
	"LeaderElection: manager.LeaderElection{\nEnabled: $1, Name: $2, Namespace: os.Getenv(\"POD_NAMESPACE\"),\n},",
	`(?m)^\s*LeaderElection:\s+false,\n`, "",
	`(?s)\tif err := mgr\.Add(?:Healthz|Readyz)Check\("\w+", healthz\.Ping\); err != nil \{.*?\n\t\}\n`, "",
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
		`\t\tmetricsServerOptions\.FilterProvider = filters\.WithAuthenticationAndAuthorization\n\t\}\n\n?`, "",
	`(?m)(?:^\t// If the certificate is not specified.*\n(?:\t//.*\n)*)?^(\tif len\(metricsCertPath\) > 0 \{\n)`+
		`((?:\t\tsetupLog\.Info\("Initializing metrics certificate watcher[^\n]*\n(?:\t\t\t[^\n]*\n)*\n?)?)`+
		`\t\tmetricsServerOptions\.CertDir = metricsCertPath\n`+
		`\t\tmetricsServerOptions\.CertName = metricsCertName\n`+
		`\t\tmetricsServerOptions\.KeyName = metricsCertKey\n\t\}\n`,
	"$1$2\t\tserving.CertFile = filepath.Join(metricsCertPath, metricsCertName)\n"+
		"\t\tserving.KeyFile = filepath.Join(metricsCertPath, metricsCertKey)\n\t}\n",
	`(?m)\bMetrics:(\s+)metricsServerOptions,`, "Metrics:$1 metrics.New(),\nMetricsAddr: metricsAddr,\nServing: serving,",
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
	return addImports(dropImports(goRewrites.apply(text)))
}

// dropImports drops the imports that rewrites have made needless.
func dropImports(text string) string {
	for name, path := range map[string]string{
		"healthz": "healthz", "zap": "log/zap", "filters": "metrics/filters", "metricsserver": "metrics/server",
	} {
		if regexp.MustCompile(`\b` + name + `\.\w`).MatchString(text) {
			continue
		}
		text = regexp.MustCompile(`(?m)^\s*(?:metricsserver )?`+theirs+`/pkg/`+path+`"\n`).ReplaceAllString(text, "")
	}
	return text
}

// addImports adds the imports that rewrites have made necessary.
func addImports(text string) string {
	for _, i := range []struct{ use, path string }{
		{`klog.`, "k8s.io/klog/v2"},
		{`metrics.New()`, "github.com/flyball-dev/flyball/manager/metrics"},
		{`manager.Serving{`, "github.com/flyball-dev/flyball/manager"},
		{`filepath.Join(metrics`, "path/filepath"},
	} {
		uses := regexp.MustCompile(`[^.\w]` + regexp.QuoteMeta(i.use)).MatchString(text)
		if uses && !strings.Contains(text, "\t\""+i.path+"\"\n") {
			text = strings.Replace(text, "import (\n", "import (\n\t\""+i.path+"\"\n", 1)
		}
	}
	return text
}

// makefileRewrites free the tests from the downloads of envtest.
var makefileRewrites = newRewrites(
	`(?m)^(test:.*) setup-envtest\b`, `$1`,
	`KUBEBUILDER_ASSETS=.*?-p path\)" go test`, `go test`,
)
