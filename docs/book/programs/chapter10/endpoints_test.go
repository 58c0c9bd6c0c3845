package chapter10

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/controllers/endpoints"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

var theReal = real(endpoints.Name, controllers.Options{})

// TestChapter10Book follows the Endpoints of a Service.
func TestChapter10Book(t *testing.T) {
	var b strings.Builder
	inCluster(t, weather{}, theReal, func(c *cluster) {
		do := func(what string, f func()) {
			f()
			c.settle()
			fmt.Fprintf(&b, "%-34s %s\n", what, c.describe("web"))
		}
		services := c.Client().CoreV1().Services("default")
		do("the Service web is created", func() {
			_, err := services.Create(c.t.Context(), service("web"), metav1.CreateOptions{})
			c.must(err)
		})
		do("the Pod web-1 is created", func() { c.createPod(pod("web", 1)) })
		do("web-1 has an address", func() { c.report("web-1", serving("10.0.0.1", false)) })
		do("web-1 is ready", func() { c.report("web-1", serving("10.0.0.1", true)) })
		do("web-2 is created, and is ready", func() {
			c.createPod(pod("web", 2))
			c.report("web-2", serving("10.0.0.2", true))
		})
		do("web-1 is overloaded", func() { c.report("web-1", serving("10.0.0.1", false)) })
		do("web-1 has recovered", func() { c.report("web-1", serving("10.0.0.1", true)) })
		do("web-2 gets the label app=debug", func() { c.patch("web-2", `{"metadata":{"labels":{"app":"debug"}}}`) })
		do("web-1 is deleted", func() { c.deletePod("web-1") })
		do("the Service web is deleted", func() {
			c.must(services.Delete(c.t.Context(), "web", metav1.DeleteOptions{}))
		})
	})
	book.Trace(t, page, b.String())
}

// TestChapter10Object shows the object itself.
func TestChapter10Object(t *testing.T) {
	inCluster(t, weather{}, theReal, func(c *cluster) {
		ep, err := c.Client().CoreV1().Endpoints("default").Get(c.t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(map[string]any{"subsets": ep.Subsets})
		c.must(err)
		book.Block(t, page, "```yaml\n"+string(text)+"```")
	}, service("web"), pod("web", 1, serving("10.0.0.1", true)), pod("web", 2, serving("10.0.0.2", false)))
}

// TestChapter10Keys compares two choices of the key.
func TestChapter10Keys(t *testing.T) {
	const many = 50
	table := "| | a key for each Pod | a key for each Service |\n|---|---|---|\n"
	cells := [2][2]string{}
	for n, setup := range []func(mgr ctrl.Manager) error{(&perPod{}).setup, theReal} {
		inCluster(t, weather{write: 100 * time.Millisecond, late: 3 * time.Millisecond}, setup, func(c *cluster) {
			services := c.Client().CoreV1().Services("default")
			_, err := services.Create(c.t.Context(), service("web"), metav1.CreateOptions{})
			c.must(err)
			for i := range many {
				c.createPod(pod("web", i))
			}
			c.settle()
			c.start()
			for i := range many {
				time.Sleep(9 * time.Millisecond)
				c.report(fmt.Sprintf("web-%d", i), serving(fmt.Sprintf("10.0.0.%d", i+1), true))
			}
			c.settle()
			if have, _, _ := c.endpoints("web"); len(have) != many {
				t.Errorf("%d addresses, want %d", len(have), many)
			}
			sent := c.writes()
			cells[0][n] = fmt.Sprintf("%d writes, the last after %v", len(sent),
				sent[len(sent)-1].at.Round(100*time.Millisecond))
			_, err = services.Patch(c.t.Context(), "web", types.MergePatchType,
				[]byte(`{"spec":{"selector":{"app":"web","tier":"front"}}}`), metav1.PatchOptions{})
			c.must(err)
			time.Sleep(time.Hour)
			have, _, _ := c.endpoints("web")
			if right := len(have) == 0; right != (n == 1) {
				t.Errorf("design %d: %d addresses after the selector has changed", n, len(have))
			}
			cells[1][n] = fmt.Sprintf("%d addresses", len(have))
		})
	}
	for i, what := range []string{
		fmt.Sprintf("%d Pods become ready within half a second", many),
		"an hour after the selector changed, to one that no Pod matches",
	} {
		table += fmt.Sprintf("| %s | %s | %s |\n", what, cells[i][0], cells[i][1])
	}
	book.Block(t, page, table)
}

// TestChapter10Late: a Pod is not ready for a tenth of a second, and events of Endpoints come 370 ms late.
func TestChapter10Late(t *testing.T) {
	for _, design := range []struct {
		name  string
		setup func(mgr ctrl.Manager) error
		right bool
	}{{"compare", (&comparer{}).setup, false}, {"real", theReal, true}} {
		t.Run(design.name, func(t *testing.T) {
			var b strings.Builder
			web := pod("web", 1, serving("10.0.0.1", true))
			ep := &corev1.Endpoints{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
				Subsets:    subsetsOf([]corev1.EndpointAddress{addressOf("web-1", "10.0.0.1")}),
			}
			inCluster(t, weather{late: 370 * time.Millisecond}, design.setup, func(c *cluster) {
				c.start()
				c.report("web-1", serving("10.0.0.1", false))
				time.Sleep(100 * time.Millisecond)
				c.report("web-1", serving("10.0.0.1", true))
				time.Sleep(time.Hour)
				for _, line := range c.story() {
					fmt.Fprintln(&b, line)
				}
				end, _, _ := c.endpoints("web")
				if (len(end) == 1) != design.right {
					t.Errorf("the ready addresses are %v", end)
				}
				fmt.Fprintf(&b, " later  web-1 is ready, and the Endpoints say %s\n", said(end))
			}, service("web"), web, ep)
			book.Trace(t, page, b.String())
		})
	}
}

func said(ready []string) string {
	if len(ready) == 0 {
		return "that it is not"
	}
	return "so"
}
