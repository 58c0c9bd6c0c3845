package chapter10

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/controllers/endpointslice"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

var node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}

// slicesOf returns the EndpointSlices of web.
func (c *cluster) slicesOf() []discoveryv1.EndpointSlice {
	c.t.Helper()
	list, err := c.Client().DiscoveryV1().EndpointSlices("default").List(c.t.Context(), metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=web",
	})
	c.must(err)
	return list.Items
}

// TestChapter10Slices draws which endpoint is in which slice, at most three in one.
func TestChapter10Slices(t *testing.T) {
	// A deletion is two events at one time, and one write serves both.
	o := controllers.Options{EndpointSlice: endpointslice.Options{
		MaxEndpointsPerSlice: 3, BatchPeriod: 10 * time.Millisecond,
	}}
	objects := []runtime.Object{node, service("web")}
	for n := 1; n <= 7; n++ {
		objects = append(objects, pod("web", n, serving(fmt.Sprintf("10.0.0.%d", n), true)))
	}
	const most = 3
	var order []string // the slices, in the order in which they were first seen
	was := map[string]string{}
	var rows [][]figure.Cell
	inCluster(t, weather{}, real(endpointslice.Name, o), func(c *cluster) {
		look := func(what string, writes int) {
			c.settle()
			if sent := c.writes(); len(sent) != writes {
				t.Errorf("%s: %d writes, want %d", what, len(sent), writes)
			}
			row := []figure.Cell{{Text: what}}
			is := map[string]string{}
			found := c.slicesOf()
			slices.SortFunc(found, func(a, b discoveryv1.EndpointSlice) int {
				return strings.Compare(content(&a), content(&b))
			})
			for _, s := range found {
				if !slices.Contains(order, s.Name) {
					order = append(order, s.Name)
				}
				is[s.Name] = content(&s)
			}
			for _, name := range order {
				cell := figure.Cell{Text: is[name]}
				if is[name] != was[name] {
					cell.Class = figure.Lit
				}
				row = append(row, cell)
			}
			rows, was = append(rows, row), is
			c.start()
		}
		look("web-1 to web-7 are ready", 3)
		c.report("web-2", serving("10.0.0.2", false))
		look("web-2 is not ready", 1)
		c.deletePod("web-2")
		look("web-2 is deleted", 1)
		c.deletePod("web-5")
		look("web-5 is deleted", 1)
		c.createPod(pod("web", 8))
		c.report("web-8", serving("10.0.0.8", true))
		look("web-8 is ready", 1)
		c.deletePod("web-7")
		look("web-7 is deleted", 1)
	}, objects...)
	if len(order) != most {
		t.Errorf("there were %d slices", len(order))
	}
	book.Figure(t, "10-slices", figure.Table{
		Title: "Which Pod is in which EndpointSlice",
		Desc: "Each slice holds at most three endpoints. A change writes one slice. Endpoints never move from one " +
			"slice to another, so slices get less full.",
		First: 200, Head: []string{"after this", "first slice", "second slice", "third slice"}, Rows: rows,
	}.Draw())
}

// content lists the Pods of a slice by their numbers.
func content(s *discoveryv1.EndpointSlice) string {
	var numbers []string
	for _, e := range s.Endpoints {
		n := strings.TrimPrefix(e.TargetRef.Name, "web-")
		if !*e.Conditions.Ready {
			n = "(" + n + ")"
		}
		numbers = append(numbers, n)
	}
	slices.SortFunc(numbers, func(a, b string) int {
		return strings.Compare(strings.Trim(a, "()"), strings.Trim(b, "()"))
	})
	return strings.Join(numbers, " ")
}

// TestChapter10Sizes measures what the readers of a Service get when one Pod changes.
func TestChapter10Sizes(t *testing.T) {
	table := "| Pods | `Endpoints` | its addresses | the EndpointSlice that changes | of how many |\n" +
		"|---|---|---|---|---|\n"
	both := func(mgr ctrl.Manager) error {
		if err := theReal(mgr); err != nil {
			return err
		}
		return real(endpointslice.Name, controllers.Options{})(mgr)
	}
	for _, many := range []int{10, 100, 1000, 2000} {
		objects := []runtime.Object{node, service("web")}
		for n := range many {
			objects = append(objects, pod("web", n, serving(fmt.Sprintf("10.0.%d.%d", n/250, n%250+1), true)))
		}
		inCluster(t, weather{}, both, func(c *cluster) {
			c.start()
			c.report("web-7", serving("10.0.0.8", false))
			c.settle()
			if sent := c.writes(); len(sent) != 2 {
				t.Errorf("%d Pods: writes %v", many, sent)
			}
			ep, err := c.Client().CoreV1().Endpoints("default").Get(c.t.Context(), "web", metav1.GetOptions{})
			c.must(err)
			addresses := 0
			for _, s := range ep.Subsets {
				addresses += len(s.Addresses) + len(s.NotReadyAddresses)
			}
			all := c.slicesOf()
			at := slices.IndexFunc(all, func(s discoveryv1.EndpointSlice) bool {
				return strings.Contains(content(&s), "(7)")
			})
			table += fmt.Sprintf("| %d | %s | %d | %s | %d |\n", many, size(t, ep), addresses, size(t, &all[at]),
				len(all))
		}, objects...)
	}
	book.Block(t, page, table)
}

func size(t *testing.T, o any) string {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d KB", (len(text)+512)/1024)
}
