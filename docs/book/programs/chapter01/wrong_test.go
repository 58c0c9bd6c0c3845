package chapter01

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
	"github.com/flyball-dev/flyball/localapi"
)

const page = "01-control-loop"

// run runs a scenario in virtual time on a server of its own, which invents the same names in every run.
func run(t *testing.T, scenario func(t *testing.T, pods corev1client.PodInterface)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := localapi.NewTestWith(t, localapi.Options{Rand: rand.NewPCG(1, 2)})
		scenario(t, kubernetes.NewForConfigOrDie(server.RESTConfig()).CoreV1().Pods("default"))
	})
}

// mustLook returns the Pods that there are.
func mustLook(t *testing.T, pods corev1client.PodInterface) []string {
	t.Helper()
	have, err := loop{pods: pods}.look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return have
}

// twoLoops runs two loops that look at the same time. It returns the trace, and the most Pods that there were.
func twoLoops(t *testing.T, numbered bool) (trace string, most int) {
	t.Helper()
	var b strings.Builder
	run(t, func(t *testing.T, pods corev1client.PodInterface) {
		l := loop{pods: pods, want: 3, numbered: numbered}
		for second := 1; second <= 4; second++ {
			time.Sleep(time.Second)
			have := mustLook(t, pods)
			fmt.Fprintf(&b, "%ds  A and B see %d\n", second, len(have))
			for _, name := range []string{"A", "B"} {
				did, err := l.act(t.Context(), have)
				switch {
				case apierrors.IsAlreadyExists(err):
					did += ": it is there already"
				case apierrors.IsNotFound(err):
					did += ": it is gone already"
				case err != nil:
					t.Error(err)
				}
				if did != "" {
					fmt.Fprintf(&b, "%ds  %s %s\n", second, name, did)
				}
			}
			most = max(most, len(mustLook(t, pods)))
		}
	})
	return b.String(), most
}

func TestChapter01TwoLoops(t *testing.T) {
	trace, most := twoLoops(t, false)
	if most != 4 {
		t.Errorf("there were at most %d Pods, want one too many", most)
	}
	book.Trace(t, page, trace)
}

func TestChapter01Numbered(t *testing.T) {
	trace, most := twoLoops(t, true)
	if most != 3 {
		t.Errorf("there were at most %d Pods", most)
	}
	book.Trace(t, page, trace)
}

// late runs one loop for a minute that sees what was there some seconds ago. It returns how many Pods there were in
// each second.
func late(t *testing.T, seconds int, numbered bool) (count []int) {
	t.Helper()
	run(t, func(t *testing.T, pods corev1client.PodInterface) {
		l := loop{pods: pods, want: 3, numbered: numbered}
		var seen [][]string
		for range 61 {
			seen = append(seen, mustLook(t, pods))
			count = append(count, len(seen[len(seen)-1]))
			old := seen[max(0, len(seen)-1-seconds)]
			if _, err := l.act(t.Context(), old); err != nil && !apierrors.IsAlreadyExists(err) &&
				!apierrors.IsNotFound(err) {
				t.Error(err)
			}
			time.Sleep(time.Second)
		}
	})
	return count
}

// TestChapter01Late draws how many Pods there are when a loop acts on old data.
func TestChapter01Late(t *testing.T) {
	now, invented, numbered := late(t, 0, false), late(t, 5, false), late(t, 5, true)
	if slices.Max(now) != 3 || slices.Max(invented) < 6 || slices.Max(numbered) != 3 {
		t.Errorf("at most %d, %d and %d Pods", slices.Max(now), slices.Max(invented), slices.Max(numbered))
	}
	const left, top, width, height, seconds, most = 60.0, 28.0, 640.0, 190.0, 40, 8
	f := figure.New("A loop that sees old data", fmt.Sprintf("The number of Pods over %d seconds; three are wanted. A "+
		"loop that sees what is there now stops at 3. One that sees what was there 5 seconds ago, and lets the server "+
		"invent the names, goes up to %d. With numbered names it is slow, and stops at 3.", seconds,
		slices.Max(invented)), figure.Width, top+height+58)
	x := func(second int) float64 { return left + width*float64(second)/seconds }
	y := func(count int) float64 { return top + height*(1-float64(count)/most) }
	for count := 0; count <= most; count++ {
		f.Line(figure.Point{X: left, Y: y(count)}, figure.Point{X: left + width, Y: y(count)}, figure.Muted)
		f.End(left-8, y(count)+4, fmt.Sprint(count), "small", figure.Muted)
	}
	for second := 0; second <= seconds; second += 5 {
		f.Middle(x(second), top+height+18, fmt.Sprintf("%d s", second), "small", figure.Muted)
	}
	f.Text(left-40, top-12, "Pods", "small", figure.Muted)
	for i, c := range []struct {
		counts []int
		class  figure.Class
		name   string
	}{
		{invented, figure.Bad, "sees 5 s ago, names invented"},
		{numbered, figure.A, "sees 5 s ago, names numbered"},
		{now, figure.Good, "sees now"},
	} {
		for from := 0; from < seconds; {
			until := from + 1
			for until < seconds && c.counts[until] == c.counts[from] {
				until++
			}
			f.Rect(x(from), y(c.counts[from])-2, x(until)-x(from), 4, c.class)
			if next := c.counts[until]; next != c.counts[from] {
				right := x(until)
				f.Line(figure.Point{X: right, Y: y(c.counts[from])}, figure.Point{X: right, Y: y(next)}, c.class)
			}
			from = until
		}
		at := left + 225*float64(i)
		f.Rect(at, top+height+34, 18, 8, c.class)
		f.Text(at+26, top+height+42, c.name, "small", c.class)
	}
	book.Figure(t, "01-late", f)
}

// TestChapter01LostUpdate has two programs change one object.
func TestChapter01LostUpdate(t *testing.T) {
	var b strings.Builder
	run(t, func(t *testing.T, pods corev1client.PodInterface) {
		ctx := t.Context()
		if _, err := pods.Create(ctx, loop{numbered: true}.next(nil), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		read := func(who string) *corev1.Pod {
			pod, err := pods.Get(ctx, "web-1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s reads   %s\n", who, labels(pod))
			return pod
		}
		write := func(who, label, value string, pod *corev1.Pod) {
			pod.Labels[label] = value
			_, err := pods.Update(ctx, pod, metav1.UpdateOptions{})
			fmt.Fprintf(&b, "%s writes  %s: %d\n", who, labels(pod), code(err))
		}
		fmt.Fprintln(&b, "without a version:")
		first, second := read("A"), read("B")
		first.ResourceVersion, second.ResourceVersion = "", ""
		write("A", "team", "blue", first)
		write("B", "tier", "front", second)
		if pod := read("A"); pod.Labels["team"] != "" {
			t.Error("the label of A is still there")
		}
		fmt.Fprintln(&b, "\nwith the version that was read:")
		first, second = read("A"), read("B")
		write("A", "team", "blue", first)
		write("B", "tier", "back", second)
		write("B", "tier", "back", read("B"))
		if pod := read("A"); pod.Labels["team"] != "blue" || pod.Labels["tier"] != "back" {
			t.Error("a label is lost")
		}
	})
	book.Trace(t, page, b.String())
}

// labels returns the labels of a Pod, but for the one that all have, and its version if it is set.
func labels(pod *corev1.Pod) string {
	var all []string
	for _, name := range []string{"team", "tier"} {
		if value := pod.Labels[name]; value != "" {
			all = append(all, name+"="+value)
		}
	}
	text := fmt.Sprintf("[%s]", strings.Join(all, " "))
	if pod.ResourceVersion != "" {
		text += " version " + pod.ResourceVersion
	}
	return text
}

// code is the status code of an answer.
func code(err error) int32 {
	if status := (*apierrors.StatusError)(nil); errors.As(err, &status) {
		return status.ErrStatus.Code
	}
	return http.StatusOK
}

// TestChapter01Polling measures what it costs to ask for all Pods once a second.
func TestChapter01Polling(t *testing.T) {
	table := "| Pods | one answer | a day, asked once a second |\n|---|---|---|\n"
	synctest.Test(t, func(t *testing.T) {
		server := localapi.NewTestWith(t, localapi.Options{Rand: rand.NewPCG(1, 2)})
		pods := kubernetes.NewForConfigOrDie(server.RESTConfig()).CoreV1().Pods("default")
		made := 0
		for _, n := range []int{10, 100, 1000} {
			for ; made < n; made++ {
				if _, err := pods.Create(t.Context(), loop{}.next(nil), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			answer := httptest.NewRecorder()
			const path = "/api/v1/namespaces/default/pods"
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			server.Handler().ServeHTTP(answer, request)
			size := float64(answer.Body.Len())
			table += fmt.Sprintf("| %d | %.0f KB | %.1f GB |\n", n, size/1e3, size*86400/1e9)
		}
	})
	book.Block(t, page, table)
}
