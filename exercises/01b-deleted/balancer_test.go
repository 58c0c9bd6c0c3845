package balancer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// world is the API server and the cloud, in memory.
type world struct {
	services  map[string]Service
	balancers map[string]Balancer
	deletes   int
	// down answers the next calls of the cloud's Delete with an error.
	down int
	// hidden answers the calls of the cloud's List with an error, and silent those of the API server's Get.
	hidden, silent bool
}

var (
	errDown   = errors.New("the cloud does not answer")
	errSilent = errors.New("the API server does not answer")
)

// api is the world as the API server.
type api struct{ *world }

func (w api) Get(name string) (Service, error) {
	s, ok := w.services[name]
	switch {
	case w.silent:
		return s, errSilent
	case !ok:
		return s, kube.ErrNotFound
	}
	return s, nil
}

func (w api) List() ([]Service, error) {
	var all []Service
	for _, name := range slices.Sorted(maps.Keys(w.services)) {
		all = append(all, w.services[name])
	}
	return all, nil
}

// cloud is the world as the cloud.
type cloud struct{ *world }

func (w cloud) Ensure(b Balancer) error {
	if _, there := w.balancers[b.Name]; !there {
		w.balancers[b.Name] = b
	}
	return nil
}

func (w cloud) Delete(name string) error {
	if w.down > 0 {
		w.down--
		return errDown
	}
	w.deletes++
	delete(w.balancers, name)
	return nil
}

func (w cloud) List() ([]Balancer, error) {
	if w.hidden {
		return nil, errDown
	}
	var all []Balancer
	for _, name := range slices.Sorted(maps.Keys(w.balancers)) {
		all = append(all, w.balancers[name])
	}
	return all, nil
}

func newWorld(services ...string) *world {
	w := &world{services: map[string]Service{}, balancers: map[string]Balancer{}}
	for _, name := range services {
		w.services[name] = Service{Name: name, Balanced: true}
	}
	return w
}

// start starts the program.
func (w *world) start(t *testing.T) *Controller {
	t.Helper()
	c := New(api{w}, cloud{w}, "here")
	if err := c.Start(); err != nil {
		t.Fatalf("Start returned %v.", err)
	}
	if err := c.Work(); err != nil && !errors.Is(err, errDown) {
		t.Fatalf("Work returned %v.", err)
	}
	return c
}

// check compares the load balancers.
func (w *world) check(t *testing.T, happened, want, why string) {
	t.Helper()
	var got []string
	for _, name := range slices.Sorted(maps.Keys(w.balancers)) {
		got = append(got, fmt.Sprintf("%s of cluster %s", name, w.balancers[name].Cluster))
	}
	if all := strings.Join(got, ", "); all != want {
		t.Fatalf("%s\nThe cloud has [%s], it should have [%s].\n%s", happened, all, want, why)
	}
}

func Test1WhileTheProgramRuns(t *testing.T) {
	w := newWorld("shop", "blog")
	c := w.start(t)
	w.check(t, "Two Services want load balancers.", "blog of cluster here, shop of cluster here", "")
	delete(w.services, "blog")
	c.Changed("blog")
	if err := c.Work(); err != nil {
		t.Fatalf("Work returned %v.", err)
	}
	w.check(t, "One Service was deleted.", "shop of cluster here", "")
}

func Test2WhileNoProgramRuns(t *testing.T) {
	w := newWorld("shop", "blog")
	w.start(t)
	delete(w.services, "blog") // Changed is not called.
	w.start(t)
	w.check(t, "blog was deleted while the program was stopped. Then the program started.", "shop of cluster here",
		"Nothing tells the new program of a Service that was deleted before it began. What can it look at instead?")
}

func Test3AChangeWhileNoProgramRuns(t *testing.T) {
	w := newWorld("shop", "blog")
	w.start(t)
	w.services["blog"] = Service{Name: "blog"} // It does not want a load balancer any more.
	w.start(t)
	w.check(t, "blog was changed while the program was stopped, and wants no load balancer any more.",
		"shop of cluster here", "The new program does look at blog, since it is there. What does it believe?")
}

func Test4TheProgramStopsInTheMiddle(t *testing.T) {
	w := newWorld("shop", "blog")
	c := w.start(t)
	delete(w.services, "blog")
	c.Changed("blog")
	w.down = 1
	if err := c.Work(); !errors.Is(err, errDown) {
		t.Fatalf("The cloud did not answer, and Work returned %v. It should return that error.", err)
	}
	if err := c.Work(); err != nil {
		t.Fatalf("The cloud answers again, and Work returned %v.", err)
	}
	w.check(t, "blog was deleted, and the cloud did not answer at first.", "shop of cluster here",
		"What failed has to stay in the queue, or nobody looks at it again.")

	w = newWorld("shop", "blog")
	c = w.start(t)
	delete(w.services, "blog")
	c.Changed("blog")
	w.down = 1
	if err := c.Work(); !errors.Is(err, errDown) {
		t.Fatalf("The cloud did not answer, and Work returned %v. It should return that error.", err)
	}
	w.start(t) // The queue of the old program is gone.
	w.check(t, "blog was deleted, the cloud did not answer, and before the next try the program was started again.",
		"shop of cluster here", "What is to be done must follow from what is there, not from a queue in memory.")
}

func Test5OtherClustersUseTheCloudToo(t *testing.T) {
	w := newWorld("shop")
	w.balancers["mail"] = Balancer{Name: "mail", Cluster: "elsewhere"}
	w.balancers["news"] = Balancer{Name: "news", Cluster: "elsewhere"}
	w.services["news"] = Service{Name: "news"}
	c := w.start(t)
	c.Changed("mail")
	if err := c.Work(); err != nil {
		t.Fatalf("Work returned %v.", err)
	}
	w.check(t, "mail and news are load balancers of another cluster.",
		"mail of cluster elsewhere, news of cluster elsewhere, shop of cluster here",
		"A cleanup that does not ask whose they are takes other people's services off the net.")
}

func Test6WhenAllIsWellNothingIsDeleted(t *testing.T) {
	w := newWorld("shop", "blog")
	w.services["plain"] = Service{Name: "plain"}
	w.start(t)
	w.start(t)
	w.check(t, "The program was started twice.", "blog of cluster here, shop of cluster here", "")
	if w.deletes > 0 {
		t.Fatalf("All was well, and the cloud was told to delete %d load balancers.", w.deletes)
	}
}

func Test7NoAnswerIsNotAnEmptyCloud(t *testing.T) {
	w := newWorld("shop", "blog")
	w.start(t)
	delete(w.services, "blog")
	w.hidden = true
	c := New(api{w}, cloud{w}, "here")
	if err := errors.Join(c.Start(), c.Work()); err == nil {
		t.Fatal("The cloud did not say which load balancers there are, and neither Start nor Work returned an error. " +
			"The program would believe that all is well.")
	}
	w = newWorld("shop")
	w.start(t)
	w.silent = true
	c = New(api{w}, cloud{w}, "here")
	if err := errors.Join(c.Start(), c.Work()); !errors.Is(err, errSilent) {
		t.Fatalf("The API server did not answer, and Start and Work returned %v, not that error.", err)
	}
	w.check(t, "The API server did not answer.", "shop of cluster here", "No answer does not mean that shop is gone.")
}
