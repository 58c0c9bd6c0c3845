package endpoints

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/exercises/kube"
)

type labels = map[string]string

func pod(name string, l labels, ip string) *kube.Pod {
	return &kube.Pod{Object: kube.Object{Name: name, Labels: l}, IP: ip, Ready: true}
}

func service(name string, selector labels) *kube.Service {
	return &kube.Service{Object: kube.Object{Name: name}, Selector: selector}
}

func endpoints(name string, ready ...string) *kube.Endpoints {
	return &kube.Endpoints{Object: kube.Object{Name: name}, Ready: ready}
}

// web returns a Pod with the label app=web that is ready at 10.0.0.n.
func web(n int, change ...func(p *kube.Pod)) *kube.Pod {
	name, ip := fmt.Sprintf("web-%d", n), fmt.Sprintf("10.0.0.%d", n)
	p := pod(name, labels{"app": "web"}, ip)
	for _, f := range change {
		f(p)
	}
	return p
}

var webService = service("web", labels{"app": "web"})

func words(c Change) string {
	text := []string{"leave", "create", "update", "delete"}[c.Verb]
	if c.Endpoints != nil && c.Verb != Leave {
		text += fmt.Sprintf(" %s: ready %v, not ready %v", c.Endpoints.Key(), c.Endpoints.Ready, c.Endpoints.NotReady)
	}
	return text
}

func Test1SelectorsMatch(t *testing.T) {
	for _, c := range []struct {
		selector, labels labels
		want             bool
	}{
		{labels{"app": "web"}, labels{"app": "web", "tier": "front"}, true},
		{labels{"app": "web", "tier": "front"}, labels{"app": "web"}, false},
		{labels{"app": "web"}, labels{"app": "db"}, false},
		{labels{"app": ""}, labels{"tier": "front"}, false},
		{labels{}, labels{"app": "db"}, true},
		{nil, labels{"app": "db"}, false},
	} {
		if got := Matches(c.selector, c.labels); got != c.want {
			t.Fatalf("The selector %v and the labels %v: Matches says %v, and should say %v.\n"+
				"A selector matches what has all of its labels. A nil selector matches nothing.",
				c.selector, c.labels, got, c.want)
		}
	}
}

func Test2PlanListsAddresses(t *testing.T) {
	pods := []*kube.Pod{
		web(3), web(1), web(2, func(p *kube.Pod) { p.Ready = false }),
		pod("db", labels{"app": "db"}, "10.0.0.9"),
	}
	shop := service("web", labels{"app": "web"})
	shop.Namespace, shop.UID, shop.Version = "shop", "u1", 7
	plan := Plan(shop, pods, nil)
	got := words(plan)
	if want := "create shop/web: ready [10.0.0.1 10.0.0.3], not ready [10.0.0.2]"; got != want {
		t.Fatalf("There are web-3, web-1, web-2, which is not ready, and a Pod of another app. The plan is\n  %s\n"+
			"want\n  %s", got, want)
	}
	if e := plan.Endpoints; e.UID != "" || e.Version != 0 {
		t.Fatalf("The new Endpoints have the UID %q and the version %d, and should have none: they are those of the "+
			"Service.\nThe server refuses to create an object with a version.", e.UID, e.Version)
	}
}

func Test3PlanLeavesOutWhatCannotServe(t *testing.T) {
	pods := []*kube.Pod{
		web(1, func(p *kube.Pod) { p.IP = "" }), web(2, func(p *kube.Pod) { p.Ended = true }),
		web(3, func(p *kube.Pod) { p.Deleting = true }), web(4),
	}
	got := words(Plan(webService, pods, nil))
	if want := "create web: ready [10.0.0.4], not ready []"; got != want {
		t.Fatalf("web-1 has no IP, web-2 has ended, web-3 is being deleted. The plan is\n  %s\nwant\n  %s\n"+
			"Clients that connect to such a Pod wait for nothing.", got, want)
	}
}

func Test4PlanWritesNothingInVain(t *testing.T) {
	right, reversed := endpoints("web", "10.0.0.1", "10.0.0.2"), endpoints("web", "10.0.0.2", "10.0.0.1")
	for _, c := range []struct {
		what    string
		svc     *kube.Service
		current *kube.Endpoints
		want    string
	}{
		{"The Endpoints are right: each write goes to every node of the cluster.", webService, right, "leave"},
		{
			"An address is missing.", webService, endpoints("web", "10.0.0.2"),
			"update web: ready [10.0.0.1 10.0.0.2], not ready []",
		},
		{
			"An address is listed as not ready, too.", webService, &kube.Endpoints{
				Object: right.Object, Ready: right.Ready, NotReady: []string{"10.0.0.3"},
			},
			"update web: ready [10.0.0.1 10.0.0.2], not ready []",
		},
		{
			"Somebody has changed the order.", webService, reversed,
			"update web: ready [10.0.0.1 10.0.0.2], not ready []",
		},
		{"The Service is gone.", nil, right, "delete"},
		{"The Service is gone, and there are no Endpoints.", nil, nil, "leave"},
		{
			"The Service has no selector: its Endpoints belong to somebody else.", service("web", nil),
			endpoints("web", "192.0.2.1"), "leave",
		},
	} {
		if got := words(Plan(c.svc, []*kube.Pod{web(2), web(1)}, c.current)); got != c.want {
			t.Fatalf("%s The plan is\n  %s\nwant\n  %s", c.what, got, c.want)
		}
	}
	if len(right.Ready) != 2 || right.Ready[0] != "10.0.0.1" || reversed.Ready[0] != "10.0.0.2" {
		t.Fatalf("Plan has changed the current Endpoints, which the cache shares with others: %v and %v",
			right.Ready, reversed.Ready)
	}
}

func Test5PlanUpdatesWhatItHasSeen(t *testing.T) {
	current := endpoints("web")
	current.UID, current.Version = "u1", 7
	got := Plan(webService, []*kube.Pod{web(1)}, current)
	if e := got.Endpoints; e == nil || e.UID != "u1" || e.Version != 7 {
		t.Fatalf("The current Endpoints have UID u1 and version 7, and lack an address. The plan is\n  %s\nIts "+
			"Object should be that of the current Endpoints, with the UID and the version.\nOtherwise it overwrites "+
			"what somebody else has written since.", words(got))
	}
}

func Test6PodsQueueTheirServices(t *testing.T) {
	w, c := newWorld()
	for _, svc := range []*kube.Service{
		webService, service("all", labels{}), service("db", labels{"app": "db"}), service("foreign", nil),
	} {
		w.services[svc.Name] = svc
	}
	c.OnPod(nil, web(1))
	if got := w.waiting(); got != "all web" {
		t.Fatalf("web-1 is new. OnPod has queued %q; the Services that select it are all and web.", got)
	}
	noIP := func(p *kube.Pod) { p.IP = "" }
	c.OnPod(nil, web(2, noIP))
	c.OnPod(web(2, noIP, func(p *kube.Pod) { p.Ready = false }), web(2, noIP))
	if got := w.waiting(); got != "" {
		t.Fatalf("web-2 has no IP yet, so no Endpoints list it. OnPod has queued %q.", got)
	}
	elsewhere := service("web", labels{"app": "web"})
	elsewhere.Namespace = "elsewhere"
	w.services[elsewhere.Key()] = elsewhere
	c.OnPod(nil, web(1, func(p *kube.Pod) { p.Namespace = "elsewhere" }))
	if got := w.waiting(); got != "elsewhere/web" {
		t.Fatalf("There is a new Pod in the namespace elsewhere. OnPod has queued %q, want elsewhere/web.", got)
	}
	c.OnPod(web(1), nil)
	if got := w.waiting(); got != "all web" {
		t.Fatalf("web-1 is gone. OnPod has queued %q; the Services that had its address are all and web.\n"+
			"The other web is in another namespace.", got)
	}
}

func Test7BothOldAndNewServicesAreQueued(t *testing.T) {
	w, c := newWorld()
	for _, app := range []string{"web", "db", "api"} {
		w.services[app] = service(app, labels{"app": app})
	}
	c.OnPod(web(1), web(1, func(p *kube.Pod) { p.Labels = labels{"app": "api"} }))
	if got := w.waiting(); got != "api web" {
		t.Fatalf("The label of web-1 has changed from app=web to app=api. OnPod has queued %q, want api and web.\n"+
			"The new Service has to get the address, and the old one has to lose it.", got)
	}
	c.OnPod(web(1), web(1, func(p *kube.Pod) { p.Labels, p.Ready = labels{"app": "api"}, false }))
	if got := w.waiting(); got != "api web" {
		t.Fatalf("web-1 has the label app=api now and is not ready any more. OnPod has queued %q, want api and web.",
			got)
	}
	c.OnPod(web(1), web(1, func(p *kube.Pod) { p.Labels, p.Ready = labels{"app": "web", "new": "label"}, false }))
	if got := w.waiting(); got != "web" {
		t.Fatalf("web-1 has another label and is not ready any more. OnPod has queued %q, want web.", got)
	}
}

func Test8WhatIsNotShownQueuesNothing(t *testing.T) {
	w, c := newWorld()
	w.services["web"] = webService
	for what, p := range map[string]*kube.Pod{
		"an equal Pod, as a resync tells":   web(1),
		"a Pod with another annotation":     web(1, func(p *kube.Pod) { p.Annotations = labels{"restarted": "now"} }),
		"a label that no selector asks for": pod("web-1", labels{"app": "web", "color": "red"}, "10.0.0.1"),
	} {
		c.OnPod(web(1), p)
		if got := w.waiting(); got != "" {
			t.Fatalf("The update brings %s, and OnPod has queued %q. The Endpoints would be the same.\n"+
				"In a large cluster, most events of Pods are of this kind.", what, got)
		}
	}
	for what, f := range map[string]func(p *kube.Pod){
		"is not ready":     func(p *kube.Pod) { p.Ready = false },
		"has another IP":   func(p *kube.Pod) { p.IP = "10.0.0.7" },
		"has ended":        func(p *kube.Pod) { p.Ended = true },
		"is being deleted": func(p *kube.Pod) { p.Deleting = true },
	} {
		c.OnPod(web(1), web(1, f))
		if got := w.waiting(); got != "web" {
			t.Fatalf("web-1 %s, and OnPod has queued %q, want web.", what, got)
		}
	}
}

func Test9SyncWrites(t *testing.T) {
	w, c := newWorld()
	shop := service("web", webService.Selector)
	shop.Namespace = "shop"
	w.services["shop/web"], w.pods["web-2"] = shop, web(2)
	w.pods["shop/web-1"] = web(1, func(p *kube.Pod) { p.Namespace = "shop" })
	for _, step := range []struct {
		what, want string
		f          func()
	}{
		{
			"The Service is new, and selects web-1. There is a web-2 in another namespace.",
			"create shop/web: ready [10.0.0.1], not ready []", func() {},
		},
		{"Nothing has changed.", "", func() {}},
		{"web-1 is gone.", "update shop/web: ready [], not ready []", func() { delete(w.pods, "shop/web-1") }},
		{"The Service is gone.", "delete shop/web", func() { delete(w.services, "shop/web") }},
		{"The Service is gone, and so are its Endpoints.", "", func() {}},
	} {
		step.f()
		if err := c.Sync("shop/web"); err != nil {
			t.Fatalf("%s Sync returns %v.", step.what, err)
		}
		if got := w.said(); got != step.want {
			t.Fatalf("%s Sync has written %q, want %q.", step.what, got, step.want)
		}
	}
	for verb, f := range map[string]func(){
		"create": func() { w.services["web"] = webService },
		"update": func() { w.endpoints["web"] = endpoints("web", "10.0.0.99") },
		"delete": func() { delete(w.services, "web") },
	} {
		w, c = newWorld()
		w.services["web"], w.endpoints["web"], w.broken = webService, endpoints("web"), true
		if verb == "create" {
			delete(w.endpoints, "web")
		}
		if f(); !errors.Is(c.Sync("web"), errBroken) {
			t.Fatalf("The server refuses the %s, and Sync does not return that. The loop would believe that all is "+
				"well.", verb)
		}
	}
}

// This test makes a thousand random changes. It queues Services that change itself; the rest is up to OnPod.
func Test10EveryLifeEndsRight(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		w, c := newWorld()
		pick := func() string { return []string{"a", "b", "c"}[r.IntN(3)] }
		for range 1000 {
			switch r.IntN(8) {
			case 0:
				svc := service(pick(), labels{"app": pick()})
				w.services[svc.Name] = svc
				c.Queue.Add(svc.Name)
			case 1:
				name := pick()
				delete(w.services, name)
				c.Queue.Add(name)
			case 2:
				w.settle(t, c, seed)
			default:
				name := fmt.Sprintf("pod-%d", r.IntN(10))
				old, now := w.pods[name], randomPod(r, name)
				if old != nil && r.IntN(3) == 0 {
					now = nil
				}
				if w.pods[name] = now; now == nil {
					delete(w.pods, name)
				}
				c.OnPod(old, now)
			}
		}
		w.settle(t, c, seed)
	}
}

// settle syncs what waits, and compares all Endpoints with what they should be.
func (w *world) settle(t *testing.T, c *Controller, seed uint64) {
	t.Helper()
	for _, name := range strings.Fields(w.waiting()) {
		if err := c.Sync(name); err != nil {
			t.Fatalf("Sync returns %v.", err)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		if got, want := addresses(w.endpoints[name]), w.want(name); got != want {
			t.Fatalf("After some events (seed %d) the queue is empty, and the Endpoints of %s are\n  %s\n"+
				"want\n  %s\nSome event should have queued %s, and did not.", seed, name, got, want, name)
		}
	}
}

func addresses(e *kube.Endpoints) string {
	if e == nil {
		return "none"
	}
	return fmt.Sprintf("ready %v, not ready %v", e.Ready, e.NotReady)
}

// want returns what the Endpoints of a Service should be, in words. It does without the functions of the task.
func (w *world) want(name string) string {
	svc := w.services[name]
	if svc == nil {
		return "none"
	}
	e := &kube.Endpoints{}
	for n := range 10 { // in the order of the addresses
		p := w.pods[fmt.Sprint("pod-", n)]
		if p == nil || p.Labels["app"] != svc.Selector["app"] || p.IP == "" || p.Ended || p.Deleting {
			continue
		}
		if p.Ready {
			e.Ready = append(e.Ready, p.IP)
		} else {
			e.NotReady = append(e.NotReady, p.IP)
		}
	}
	return addresses(e)
}

func randomPod(r *rand.Rand, name string) *kube.Pod {
	p := pod(name, labels{"app": []string{"a", "b", "c"}[r.IntN(3)]},
		[]string{"", "10.0.0." + strings.TrimPrefix(name, "pod-")}[min(r.IntN(4), 1)])
	p.Ready, p.Ended, p.Deleting = r.IntN(2) == 0, r.IntN(5) == 0, r.IntN(5) == 0
	return p
}
