package localapi

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// seeds and steps are how much of chance is played.
var (
	seeds = flag.Int("seeds", 8, "number of generated sequences")
	steps = flag.Int("steps", 60, "requests in a generated sequence")
)

// TestGenerated plays sequences of requests that chance made of a seed: few names, so that requests meet objects that
// exist, that are being deleted, that were replaced, and that were changed since they were read. Watches see it all.
func TestGenerated(t *testing.T) {
	known := newLedger(known)
	for seed := range *seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			newPair(t, generate(uint64(seed), *steps), known).play(t)
		})
	}
}

// generator makes steps.
type generator struct {
	*rand.Rand
	steps []*step
}

// generated are the kinds of objects in a sequence: what a create sends besides metadata, and what may be changed in
// which way.
var generated = []struct {
	resource, create string
	changes          []string // merge patches of the object
	status           []string // merge patches of the status
}{
	{
		resource: "configmaps", create: `data: {k: "1", l: "1"}`,
		changes: []string{`data: {k: "2"}`, `data: {k: null}`, `data: {l: "3"}`, `data: {k: "1"}`, `data: {k: 1}`},
	},
	{
		resource: "deployments",
		create: `spec: {replicas: 1, selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}}, ` +
			`spec: {containers: [{name: c, image: i}]}}}`,
		changes: []string{`spec: {replicas: 2}`, `spec: {replicas: 1}`, `spec: {paused: true}`, `spec: {replicas: -1}`},
		status: []string{
			`status: {observedGeneration: 2, replicas: 1}`, `status: {replicas: 2}`,
			`status: {replicas: -1}`,
		},
	},
	{
		resource: "pods", create: `spec: {nodeName: node, containers: [{name: c, image: i}]}`,
		changes: []string{
			`spec: {activeDeadlineSeconds: 50}`, `spec: {nodeName: other}`,
			`spec: {activeDeadlineSeconds: 40}`,
		},
		status: []string{
			`status: {phase: Running}`, `status: {phase: Succeeded}`,
			`status: {conditions: [{type: Ready, status: "True"}]}`,
		},
	},
	{
		resource: "poddisruptionbudgets", create: `spec: {minAvailable: 1, selector: {matchLabels: {g: "1"}}}`,
		changes: []string{
			`spec: {minAvailable: 50%}`, `spec: {minAvailable: 2}`,
			`spec: {selector: {matchLabels: {h: "1"}}}`, `spec: {maxUnavailable: 1}`,
		},
		status: []string{
			`status: {disruptionsAllowed: 1, observedGeneration: 1}`,
			`status: {disruptionsAllowed: 3, observedGeneration: 2}`, `status: {disruptionsAllowed: -1}`,
		},
	},
	{
		resource: "leases", create: `spec: {holderIdentity: a, leaseDurationSeconds: 10}`,
		changes: []string{
			`spec: {holderIdentity: b}`, `spec: {leaseDurationSeconds: 0}`,
			`spec: {leaseTransitions: 1}`,
		},
	},
}

// generate makes the script of a seed.
func generate(seed uint64, n int) *script {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0))}
	for i, k := range generated {
		g.add("WATCH", k.resource, "").watch = fmt.Sprint("all", i)
		g.add("WATCH", k.resource+"?labelSelector=g=1", "").watch = fmt.Sprint("some", i)
	}
	for range n {
		g.request()
	}
	for i, k := range generated {
		g.add(http.MethodPost, k.resource, "metadata: {name: zz-end, labels: {g: \"1\"}}\n"+k.create)
		for _, w := range []string{"all", "some"} {
			g.add("END", "zz-end", "").watch = fmt.Sprint(w, i)
		}
	}
	var text strings.Builder
	for i, st := range g.steps {
		st.line = i + 1
		fmt.Fprintf(&text, "%s\n\n", st)
	}
	return &script{name: fmt.Sprint("seed-", seed), text: text.String(), steps: g.steps}
}

func (g *generator) add(method, target, body string) *step {
	s := &step{method: method, target: target, body: body, headers: http.Header{}}
	g.steps = append(g.steps, s)
	return s
}

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// request adds one request.
func (g *generator) request() {
	k := generated[g.IntN(len(generated))]
	name := pick(g, "a", "b")
	object := k.resource + "/" + name
	kept := k.resource + "-" + name
	switch g.IntN(13) {
	case 12:
		g.add(http.MethodPost, "pods/"+name+"/eviction"+pick(g, "", "", "?dryRun=All"), "metadata: {name: "+name+
			"}\ndeleteOptions: "+pick(g, "null", "{gracePeriodSeconds: 0}"))
	case 0, 1, 2:
		g.add(http.MethodPost, k.resource+pick(g, "", "", "?dryRun=All"), "metadata: "+g.metadata(name)+"\n"+
			k.create).as = pick(g, kept, "")
	case 3:
		g.add(http.MethodGet, object, "").as = kept
	case 4:
		s := g.add(http.MethodPut, object, pick(g, k.changes...))
		s.edit, s.as = kept, pick(g, kept, "")
	case 5, 6:
		g.add("MERGE", object+pick(g, "", "?fieldManager=m1", "?dryRun=All"), pick(g, k.changes...))
	case 7:
		g.add("MERGE", object, "metadata: "+
			pick(g, `{finalizers: null}`, `{finalizers: ["example.com/x"]}`, `{labels: {g: "1"}}`, `{labels: null}`))
	case 8:
		g.add("APPLY", object+"?fieldManager="+pick(g, "m1", "m2")+pick(g, "", "&force=true"),
			g.applied(k.create, k.changes))
	case 9:
		g.delete(object, kept)
	case 10:
		g.list(k.resource)
	case 11:
		if len(k.status) > 0 {
			g.add(pick(g, "MERGE", "STRATEGIC"), object+"/status", pick(g, k.status...))
		}
	}
}

func (g *generator) metadata(name string) string {
	return fmt.Sprintf("{name: %s%s%s}", name, pick(g, "", `, labels: {g: "1"}`),
		pick(g, "", "", `, finalizers: ["example.com/x"]`))
}

// applied is an apply configuration: all of the object, or a part.
func (g *generator) applied(all string, parts []string) string {
	if g.IntN(2) == 0 {
		return all
	}
	return pick(g, parts...)
}

func (g *generator) delete(object, kept string) {
	switch g.IntN(4) {
	case 0:
		g.add(http.MethodDelete, object,
			pick(g, "", "dryRun: [All]", "gracePeriodSeconds: 0", "gracePeriodSeconds: 60"))
	case 1:
		g.add(http.MethodDelete, object, "propagationPolicy: "+pick(g, "Orphan", "Foreground", "Background"))
	case 2:
		g.add(http.MethodDelete, object,
			fmt.Sprintf(
				`preconditions: {uid: "${%s.metadata.uid}", resourceVersion: "${%[1]s.metadata.resourceVersion}"}`,
				kept,
			))
	case 3:
		resource, _, _ := strings.Cut(object, "/")
		g.add(http.MethodDelete, resource+"?labelSelector=g"+pick(g, "=1", "!=1"), "")
	}
}

func (g *generator) list(resource string) {
	switch g.IntN(3) {
	case 0:
		g.add(http.MethodGet, resource, "")
	case 1:
		g.add(http.MethodGet, resource+"?labelSelector=g=1", "")
	case 2:
		g.add(http.MethodGet, resource+"?limit=1", "").as = "page"
		g.add(http.MethodGet, resource+"?limit=5&continue=${page.metadata.continue}", "")
	}
}
