package endpoints

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

type labels = map[string]string

// web returns a Pod with the label app=web that is ready at 10.0.0.n.
func web(n int, change ...func(p *Pod)) *Pod {
	name, ip := fmt.Sprintf("web-%d", n), fmt.Sprintf("10.0.0.%d", n)
	p := &Pod{Name: name, Labels: labels{"app": "web"}, IP: ip, Ready: true}
	for _, f := range change {
		f(p)
	}
	return p
}

var webService = &Service{Name: "web", Selector: labels{"app": "web"}}

func words(c Change) string {
	text := []string{"leave", "create", "update", "delete"}[c.Verb]
	if c.Endpoints != nil && c.Verb != Leave {
		text += fmt.Sprintf(" %s: ready %v, not ready %v", c.Endpoints.Name, c.Endpoints.Ready, c.Endpoints.NotReady)
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
	pods := []*Pod{
		web(3), web(1), web(2, func(p *Pod) { p.Ready = false }),
		{Name: "db", Labels: labels{"app": "db"}, IP: "10.0.0.9", Ready: true},
	}
	got := words(Plan(webService, pods, nil))
	if want := "create web: ready [10.0.0.1 10.0.0.3], not ready [10.0.0.2]"; got != want {
		t.Fatalf("There are web-3, web-1, web-2, which is not ready, and a Pod of another app. The plan is\n  %s\n"+
			"want\n  %s", got, want)
	}
}

func Test3PlanLeavesOutWhatCannotServe(t *testing.T) {
	pods := []*Pod{
		web(1, func(p *Pod) { p.IP = "" }), web(2, func(p *Pod) { p.Ended = true }),
		web(3, func(p *Pod) { p.Deleting = true }), web(4),
	}
	got := words(Plan(webService, pods, nil))
	if want := "create web: ready [10.0.0.4], not ready []"; got != want {
		t.Fatalf("web-1 has no IP, web-2 has ended, web-3 is being deleted. The plan is\n  %s\nwant\n  %s\n"+
			"Clients that connect to such a Pod wait for nothing.", got, want)
	}
}

func Test4PlanWritesNothingInVain(t *testing.T) {
	right := &Endpoints{Name: "web", Ready: []string{"10.0.0.1", "10.0.0.2"}, NotReady: []string{}}
	for _, c := range []struct {
		what    string
		svc     *Service
		current *Endpoints
		want    string
	}{
		{"The Endpoints are right: each write goes to every node of the cluster.", webService, right, "leave"},
		{
			"An address is missing.", webService, &Endpoints{Name: "web", Ready: []string{"10.0.0.2"}},
			"update web: ready [10.0.0.1 10.0.0.2], not ready []",
		},
		{"The Service is gone.", nil, right, "delete"},
		{"The Service is gone, and there are no Endpoints.", nil, nil, "leave"},
		{
			"The Service has no selector: its Endpoints belong to somebody else.", &Service{Name: "web"},
			&Endpoints{Name: "web", Ready: []string{"192.0.2.1"}}, "leave",
		},
	} {
		if got := words(Plan(c.svc, []*Pod{web(2), web(1)}, c.current)); got != c.want {
			t.Fatalf("%s The plan is\n  %s\nwant\n  %s", c.what, got, c.want)
		}
	}
	if len(right.Ready) != 2 || right.Ready[0] != "10.0.0.1" {
		t.Fatalf("Plan has changed the current Endpoints, which the cache shares with others: %v", right)
	}
}

func Test5PodsQueueTheirServices(t *testing.T) {
	w, c := newWorld()
	for _, svc := range []*Service{
		webService, {Name: "all", Selector: labels{}}, {Name: "db", Selector: labels{"app": "db"}}, {Name: "foreign"},
	} {
		w.services[svc.Name] = svc
	}
	c.OnPod(nil, web(1))
	if got := w.waiting(); got != "all web" {
		t.Fatalf("web-1 is new. OnPod has queued %q; the Services that select it are all and web.", got)
	}
	c.OnPod(web(1), nil)
	if got := w.waiting(); got != "all web" {
		t.Fatalf("web-1 is gone. OnPod has queued %q; the Services that had its address are all and web.", got)
	}
}

func Test6BothOldAndNewServicesAreQueued(t *testing.T) {
	w, c := newWorld()
	for _, app := range []string{"web", "db", "api"} {
		w.services[app] = &Service{Name: app, Selector: labels{"app": app}}
	}
	c.OnPod(web(1), web(1, func(p *Pod) { p.Labels = labels{"app": "api"} }))
	if got := w.waiting(); got != "api web" {
		t.Fatalf("The label of web-1 has changed from app=web to app=api. OnPod has queued %q, want api and web.\n"+
			"The new Service has to get the address, and the old one has to lose it.", got)
	}
	c.OnPod(web(1), web(1, func(p *Pod) { p.Labels, p.Ready = labels{"app": "web", "new": "label"}, false }))
	if got := w.waiting(); got != "web" {
		t.Fatalf("web-1 has another label and is not ready any more. OnPod has queued %q, want web.", got)
	}
}

func Test7WhatIsNotShownQueuesNothing(t *testing.T) {
	w, c := newWorld()
	w.services["web"] = webService
	for what, p := range map[string]*Pod{
		"an equal Pod, as a resync tells":   web(1),
		"a Pod with another note":           web(1, func(p *Pod) { p.Note = "restarted" }),
		"a label that no selector asks for": web(1, func(p *Pod) { p.Labels = labels{"app": "web", "color": "red"} }),
	} {
		c.OnPod(web(1), p)
		if got := w.waiting(); got != "" {
			t.Fatalf("The update brings %s, and OnPod has queued %q. The Endpoints would be the same.\n"+
				"In a large cluster, most events of Pods are of this kind.", what, got)
		}
	}
	for what, f := range map[string]func(p *Pod){
		"is not ready":     func(p *Pod) { p.Ready = false },
		"has another IP":   func(p *Pod) { p.IP = "10.0.0.7" },
		"has ended":        func(p *Pod) { p.Ended = true },
		"is being deleted": func(p *Pod) { p.Deleting = true },
	} {
		c.OnPod(web(1), web(1, f))
		if got := w.waiting(); got != "web" {
			t.Fatalf("web-1 %s, and OnPod has queued %q, want web.", what, got)
		}
	}
}

func Test8SyncWrites(t *testing.T) {
	w, c := newWorld()
	w.services["web"], w.pods["web-1"] = webService, web(1)
	for _, step := range []struct {
		what, want string
		f          func()
	}{
		{"The Service is new.", "create web", func() {}},
		{"Nothing has changed.", "", func() {}},
		{"web-1 is gone.", "update web", func() { delete(w.pods, "web-1") }},
		{"The Service is gone.", "delete web", func() { delete(w.services, "web") }},
		{"The Service is gone, and so are its Endpoints.", "", func() {}},
	} {
		step.f()
		if err := c.Sync("web"); err != nil {
			t.Fatalf("%s Sync returns %v.", step.what, err)
		}
		if got := w.said(); got != step.want {
			t.Fatalf("%s Sync has written %q, want %q.", step.what, got, step.want)
		}
	}
	w.services["web"], w.broken = webService, true
	if err := c.Sync("web"); !errors.Is(err, errBroken) {
		t.Fatalf("The server refuses the write, and Sync returns %v. The loop would believe that all is well.", err)
	}
}

// This test makes a thousand random changes. It queues Services that change itself; the rest is up to OnPod.
func Test9EveryLifeEndsRight(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		w, c := newWorld()
		pick := func() string { return []string{"a", "b", "c"}[r.IntN(3)] }
		for range 1000 {
			switch r.IntN(8) {
			case 0:
				svc := &Service{Name: pick(), Selector: labels{"app": pick()}}
				w.services[svc.Name] = svc
				c.Queue.Add(svc.Name)
			case 1:
				name := pick()
				delete(w.services, name)
				c.Queue.Add(name)
			case 2:
				for _, name := range strings.Fields(w.waiting()) {
					if err := c.Sync(name); err != nil {
						t.Fatalf("Sync returns %v.", err)
					}
				}
			default:
				name := fmt.Sprintf("pod-%d", r.IntN(10))
				old, pod := w.pods[name], randomPod(r, name)
				if old != nil && r.IntN(3) == 0 {
					pod = nil
				}
				if w.pods[name] = pod; pod == nil {
					delete(w.pods, name)
				}
				c.OnPod(old, pod)
			}
		}
		for _, name := range strings.Fields(w.waiting()) {
			if err := c.Sync(name); err != nil {
				t.Fatalf("Sync returns %v.", err)
			}
		}
		w.said()
		for _, name := range []string{"a", "b", "c"} {
			if err := c.Sync(name); err != nil {
				t.Fatalf("Sync returns %v.", err)
			}
			if got := w.said(); got != "" {
				t.Fatalf("After a thousand events (seed %d) the queue was empty, and the Endpoints of %s were wrong: "+
					"a further Sync has written %q.\nSome event should have queued %s, and did not.",
					seed, name, got, name)
			}
		}
	}
}

func randomPod(r *rand.Rand, name string) *Pod {
	return &Pod{
		Name: name, Labels: labels{"app": []string{"a", "b", "c"}[r.IntN(3)]},
		IP:    []string{"", "10.0.0." + strings.TrimPrefix(name, "pod-")}[min(r.IntN(4), 1)],
		Ready: r.IntN(2) == 0, Ended: r.IntN(5) == 0, Deleting: r.IntN(5) == 0,
	}
}
