// Package chapter09 has the programs of the chapter about reading one's own writes: one reconciler that reads in four
// ways, against an API server whose watch is late.
package chapter09

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

// A keeper keeps as many pods as a ReplicaSet asks for.
type keeper struct {
	client.Client
	// read are options of its list of pods.
	read []client.ListOption
	// sleep is how long it waits after it has written.
	sleep time.Duration
	// expected is nil or counts the events that must come before the next reconcile.
	expected *expectations
}

// Reconcile creates the pods that are missing, and deletes those that are too many.
func (k *keeper) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	if k.expected != nil && !k.expected.fulfilled() {
		return ctrl.Result{}, nil
	}
	var set appsv1.ReplicaSet
	if err := k.Get(ctx, r.NamespacedName, &set); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var pods corev1.PodList
	if err := k.List(ctx, &pods, append(k.read, client.InNamespace(r.Namespace))...); err != nil {
		return ctrl.Result{}, err
	}
	missing := int(*set.Spec.Replicas) - len(pods.Items)
	if k.expected != nil {
		k.expected.expect(max(missing, 0), max(-missing, 0))
	}
	for n := range missing {
		if err := k.Create(ctx, k.podOf(&set)); err != nil {
			if k.expected != nil {
				k.expected.failed(missing - n)
			}
			return ctrl.Result{}, err
		}
	}
	for n := range -missing {
		if err := k.Delete(ctx, &pods.Items[n]); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
	}
	time.Sleep(k.sleep)
	return ctrl.Result{}, nil
}

// podOf returns a pod for the set. The server makes its name.
func (k *keeper) podOf(set *appsv1.ReplicaSet) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, GenerateName: set.Name + "-"},
		Spec:       set.Spec.Template.Spec,
	}
	_ = ctrl.SetControllerReference(set, pod, k.Scheme()) // It fails only for kinds that the scheme does not know.
	return pod
}

// setup builds the controller.
func (k *keeper) setup(mgr ctrl.Manager) error {
	k.Client = mgr.GetClient()
	seen := builder.WithPredicates(builder.PredicateFunc(func(e predicate.Event[ctrl.Object]) bool {
		if k.expected != nil {
			k.expected.seen(e.Type)
		}
		return true
	}))
	return ctrl.NewControllerManagedBy(mgr).For(&appsv1.ReplicaSet{}).Owns(&corev1.Pod{}, seen).Complete(k)
}

const page = "09-read-your-writes"

// ways are the ways to read that the chapter compares.
func ways() map[string]*keeper {
	return map[string]*keeper{
		"the cache":            {read: []client.ListOption{client.Lagging}},
		"the cache, and sleep": {read: []client.ListOption{client.Lagging}, sleep: 500 * time.Millisecond},
		"expectations":         {read: []client.ListOption{client.Lagging}, expected: &expectations{}},
		"its own writes":       {},
	}
}

var order = []string{"the cache", "the cache, and sleep", "expectations", "its own writes"}

// weather is what goes wrong in a run.
type weather struct {
	// lag is how long each event of a watch takes, after the one before it.
	lag time.Duration
	// gap: for the first 30 s no list and no event arrives. After 10 s somebody deletes a pod, and the server forgets
	// its history.
	gap bool
	// lost: the answer to the first create does not arrive.
	lost bool
}

// story is what happened in a run.
type story struct {
	mu    sync.Mutex
	began time.Time
	trace strings.Builder
	pods  int
	first string // the first pod's name
	// changes are the times at which the number of pods changed, and counts what it became.
	changes          []time.Duration
	counts           []int
	creates, deletes int
}

func (s *story) note(format string, args ...any) {
	fmt.Fprintf(&s.trace, "%6v  %s\n", time.Since(s.began).Truncate(10*time.Millisecond), fmt.Sprintf(format, args...))
}

// count notes that the number of pods has changed.
func (s *story) count(by int) {
	s.pods += by
	s.changes, s.counts = append(s.changes, time.Since(s.began)), append(s.counts, s.pods)
}

// gate makes the weather, and tells the story from what passes.
func (s *story) gate(w weather) gate.Gate {
	lost := false
	return gate.Funcs{
		OnAnswer: func(_ context.Context, r *gate.Request, a gate.Answer) gate.Verdict {
			if r.Resource != "pods" || a.Code >= 300 {
				return gate.Verdict{}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			switch r.Verb {
			case "create":
				s.creates++
				if s.count(1); s.creates == 1 {
					s.first = a.Name
				}
				s.note("create a Pod; there are %d", s.pods)
				if w.lost && !lost {
					lost = true
					s.note("the answer is lost")
					return gate.Verdict{Action: gate.Drop}
				}
			case "delete":
				s.deletes++
				s.count(-1)
				s.note("delete a Pod; there are %d", s.pods)
			}
			return gate.Verdict{}
		},
		OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
			if r.Mutates() {
				time.Sleep(7 * time.Millisecond) // So no write is at the moment of an event.
			}
			if r.Verb == "list" && r.Resource == "pods" && s.inGap(w) {
				return gate.FailWith(apierrors.NewServiceUnavailable("the network is down"))
			}
			return gate.Verdict{}
		},
		OnFrame: func(ctx context.Context, r *gate.Request, f gate.Frame) gate.Verdict {
			if r.Resource == "pods" && s.inGap(w) {
				return gate.Verdict{Action: gate.Close}
			}
			if r.Resource == "pods" && f.Name != "" {
				select {
				case <-time.After(w.lag):
				case <-ctx.Done():
				}
			}
			return gate.Verdict{}
		},
	}
}

func (s *story) inGap(w weather) bool {
	now := time.Since(s.began)
	return w.gap && now > 0 && now < 30*time.Second
}

// tell runs the keeper for ten minutes. The ReplicaSet asks for three pods.
func tell(t *testing.T, k *keeper, w weather) *story {
	t.Helper()
	s := &story{}
	synctest.Test(t, func(t *testing.T) {
		s.began = time.Now()
		three := int32(3)
		labels := map[string]string{"app": "web"}
		set := &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec: appsv1.ReplicaSetSpec{
				Replicas: &three, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
				},
			},
		}
		api := localapi.NewTestWith(t, localapi.Options{Gate: s.gate(w), Rand: rand.NewPCG(1, 2)}, set)
		mgr, err := ctrl.NewManager(api.RESTConfig(), ctrl.Options{})
		if err == nil {
			err = k.setup(mgr)
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		ended := make(chan error)
		go func() { ended <- mgr.Run(ctx) }()
		if w.gap {
			time.Sleep(10 * time.Second)
			s.meddle(t, api)
			if err := api.Compact(t.Context()); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(10 * time.Minute)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

// meddle deletes a pod.
func (s *story) meddle(t *testing.T, api *localapi.Test) {
	t.Helper()
	s.mu.Lock()
	s.note("somebody else deletes a Pod")
	s.mu.Unlock()
	c, err := client.New(api.RESTConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	first := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: s.first}}
	if err := c.Delete(t.Context(), first); err != nil {
		t.Error(err)
	}
}

// settled returns when the number of pods last changed, and what it is then.
func (s *story) settled() (after time.Duration, pods int) {
	return s.changes[len(s.changes)-1], s.pods
}

// most returns the highest number of pods that there were at once.
func (s *story) most() (most int) {
	for _, n := range s.counts {
		most = max(most, n)
	}
	return most
}

// TestChapter09Naive is the story of a keeper that trusts its cache.
func TestChapter09Naive(t *testing.T) {
	s := tell(t, ways()["the cache"], weather{lag: time.Second})
	if s.most() <= 3 {
		t.Error("it created no pod too many")
	}
	book.Trace(t, page, s.trace.String())
}

// TestChapter09Own is the story of a keeper that reads its own writes.
func TestChapter09Own(t *testing.T) {
	s := tell(t, ways()["its own writes"], weather{lag: time.Second})
	book.Trace(t, page, s.trace.String())
}

// TestChapter09Ways compares the ways in every weather.
func TestChapter09Ways(t *testing.T) {
	table := "| it reads | 1 s for each event | a watch that is cut | a lost answer |\n|---|---|---|---|\n"
	chart := figure.TimeChart{
		Title: "How many Pods there are, while each event takes a second",
		Desc: "Three Pods are wanted. A keeper that reads its cache creates too many and then deletes too many. One " +
			"that sleeps does so, too. One with expectations and one that reads its own writes create three.",
		Until: 12, Step: 1, Unit: "s",
	}
	for _, way := range order {
		table += "| " + way + " |"
		for n, w := range []weather{
			{lag: time.Second}, {lag: time.Millisecond, gap: true}, {lag: 100 * time.Millisecond, lost: true},
		} {
			s := tell(t, ways()[way], w)
			after, pods := s.settled()
			cell := fmt.Sprintf("at most %d, %d after %v", s.most(), pods, after.Round(100*time.Millisecond))
			if w.gap { // The reflector's waits are random.
				cell = fmt.Sprintf("%d after ten minutes", pods)
			}
			table += " " + cell + " |"
			if n == 0 {
				chart.Panels = append(chart.Panels, s.panel(way, chart.Until))
			}
		}
		table += "\n"
	}
	book.Block(t, page, table)
	book.Figure(t, "09-ways", chart.Draw())
}

// panel draws the number of pods over time.
func (s *story) panel(heading string, until float64) figure.Panel {
	lane := figure.Lane{Name: "Pods"}
	for i, at := range s.changes {
		to := until
		if i+1 < len(s.changes) {
			to = min(to, s.changes[i+1].Seconds())
		}
		if to-at.Seconds() < 0.3 {
			continue // too short to be seen
		}
		class := figure.Bad
		if s.counts[i] == 3 {
			class = figure.Good
		}
		lane.Spans = append(lane.Spans, figure.Span{
			From: at.Seconds(), To: to, Label: fmt.Sprint(s.counts[i]), Class: class,
		})
	}
	class := figure.Bad
	if s.creates == 3 && s.deletes == 0 {
		class = figure.Good
	}
	return figure.Panel{
		Heading: heading, Lanes: []figure.Lane{lane}, RemarkClass: class,
		Remark: fmt.Sprintf("%d creates, %d deletes", s.creates, s.deletes),
	}
}
