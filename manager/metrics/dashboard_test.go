package metrics

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/flyball-dev/flyball/workqueue"
)

// dashboard has the parts of Grafana's format that the test needs.
type dashboard struct {
	Templating struct {
		List []struct {
			Name  string
			Query json.RawMessage
		}
	}
	Panels []struct {
		Type, Title, Description string
		Targets                  []struct{ Expr, LegendFormat string }
	}
}

var (
	durationOf  = regexp.MustCompile(`\[[^\]]*\]`)
	grouping    = regexp.MustCompile(`by \(([^)]*)\)`)
	series      = regexp.MustCompile(`\b([a-z][a-z0-9_]*_[a-z0-9_]*)(?:\{([^}]*)\})?`)
	matcherName = regexp.MustCompile(`(\w+)\s*=~?`)
	legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

// scraped are labels that Prometheus adds when it reads a process.
var scraped = []string{"job", "instance", "pod", "namespace"}

// TestDashboard: every query of the dashboard is about metrics and labels that a manager has.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../deploy/grafana/flyball.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	families := everything(t)
	queries := 0
	for _, p := range d.Panels {
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q lacks a title, a description or a query", p.Title)
		}
		for _, target := range p.Targets {
			queries++
			for _, problem := range check(target.Expr, target.LegendFormat, families) {
				t.Errorf("panel %q: %s: %s", p.Title, target.Expr, problem)
			}
		}
	}
	for _, v := range d.Templating.List {
		if v.Name != "datasource" && !strings.Contains(string(v.Query), "controller_runtime_reconcile_total") {
			t.Errorf("variable %s: query %s", v.Name, v.Query)
		}
	}
	if queries < 25 {
		t.Errorf("only %d queries were found", queries)
	}
}

// TestCheck checks that check finds the problems of queries.
func TestCheck(t *testing.T) {
	families := everything(t)
	for _, c := range []struct{ expr, legend, problem string }{
		{"sum by (name) (workqueue_depth{job=~\"x\"})", "{{name}}", ""},
		{"rate(workqueue_depht[5m])", "", "there is no metric workqueue_depht"},
		{"workqueue_depth{controller=\"x\"}", "", "workqueue_depth has no label controller"},
		{"sum by (queue) (workqueue_depth)", "", "workqueue_depth has no label queue"},
		{"workqueue_depth", "{{queue}}", "workqueue_depth has no label queue"},
		{"workqueue_depth_bucket", "", "there is no metric workqueue_depth_bucket"},
		{"sum by (le) (rate(workqueue_work_duration_seconds_bucket[1m]))", "", ""},
	} {
		problem := strings.Join(check(c.expr, c.legend, families), "; ")
		if problem != c.problem {
			t.Errorf("%s: %q, want %q", c.expr, problem, c.problem)
		}
	}
}

// everything returns the metrics of a process that does everything, by name.
func everything(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	r := New()
	leading := false
	fill(r, &leading)
	r.webhooks.total.WithLabelValues("/mutate", "200").Inc()
	q := workqueue.New(workqueue.Options[string]{Name: "c", Metrics: r})
	t.Cleanup(q.ShutDown)
	q.Add("a")
	if item, err := q.Get(t.Context()); err == nil {
		q.Done(item.Key)
	}
	gathered, err := r.prometheus.Gather()
	if err != nil {
		t.Fatal(err)
	}
	families := map[string]*dto.MetricFamily{}
	for _, f := range gathered {
		families[f.GetName()] = f
	}
	return families
}

// check returns the problems of a query.
func check(expr, legend string, families map[string]*dto.MetricFamily) (problems []string) {
	asked := map[string]bool{}
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(m[1], ",") {
			asked[strings.TrimSpace(label)] = true
		}
	}
	for _, m := range legendLabel.FindAllStringSubmatch(legend, -1) {
		asked[m[1]] = true
	}
	expr = durationOf.ReplaceAllString(grouping.ReplaceAllString(expr, ""), "")
	for _, m := range series.FindAllStringSubmatch(expr, -1) {
		name := m[1]
		if name == "histogram_quantile" {
			continue
		}
		f := families[name]
		known := slices.Clone(scraped)
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			of := families[strings.TrimSuffix(name, suffix)]
			if f == nil && strings.HasSuffix(name, suffix) && of.GetType() == dto.MetricType_HISTOGRAM {
				f = of
				known = append(known, "le")
			}
		}
		if f == nil {
			problems = append(problems, "there is no metric "+name)
			continue
		}
		for _, metric := range f.Metric {
			for _, label := range metric.Label {
				known = append(known, label.GetName())
			}
		}
		labels := maps.Clone(asked)
		for _, matcher := range matcherName.FindAllStringSubmatch(m[2], -1) {
			labels[matcher[1]] = true
		}
		for _, label := range slices.Sorted(maps.Keys(labels)) {
			if !slices.Contains(known, label) {
				problems = append(problems, name+" has no label "+label)
			}
		}
	}
	return problems
}
