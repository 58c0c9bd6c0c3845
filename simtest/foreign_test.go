package simtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
)

// asInformers watches and records events as client-go does: for a random time, and in the order of a map.
func asInformers(e *Env) (Program, error) {
	c, err := kubernetes.NewForConfig(e.Config())
	if err != nil {
		return nil, err
	}
	return ProgramFunc(func(ctx context.Context) error {
		o := metav1.ListOptions{TimeoutSeconds: ptr.To(300 + rand.Int64N(300))}
		w, err := c.CoreV1().ConfigMaps("default").Watch(ctx, o)
		if err != nil {
			return err
		}
		defer w.Stop()
		for name := range map[string]bool{"a": true, "b": true, "c": true, "d": true, "e": true} {
			event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
			if _, err := c.CoreV1().Events("default").Create(ctx, event, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return nil
	}), nil
}

// TestForeignClients: what client-go does at random makes no difference between two runs of a plan.
func TestForeignClients(t *testing.T) {
	c := &checker{t: t, s: &Scenario{Build: asInformers, Script: func(u *User) { u.Create(sources()[0]) }}}
	first := c.perform(&runPlan{Seed: 1}, limits{trace: true})
	if len(first.findings) > 0 || len(first.trace) < 2 {
		t.Fatalf("%v, %q", first.findings, first.trace)
	}
	for range 5 {
		if d := firstDifference(first.trace, c.perform(&runPlan{Seed: 1}, limits{trace: true}).trace); d != "" {
			t.Fatal(d)
		}
	}
}

// remover deletes a ConfigMap, and takes its finalizer away a minute later.
func remover(e *Env) (Program, error) {
	c, err := client.New(e.Config(), client.Options{})
	if err != nil {
		return nil, err
	}
	return ProgramFunc(func(ctx context.Context) error {
		object := sources()[0]
		if err := c.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return err
		}
		time.Sleep(time.Minute)
		err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			object.Finalizers = nil
			err = c.Update(ctx, object)
		}
		<-ctx.Done()
		return client.IgnoreNotFound(err)
	}), nil
}

// TestStaleRestartBeforeDeletionTimestamp: a replica may also be at the version before a delete that finalizers hold
// up.
func TestStaleRestartBeforeDeletionTimestamp(t *testing.T) {
	object := sources()[0]
	object.Finalizers = []string{"example.com/hold"}
	c := &checker{t: t, s: &Scenario{Objects: []runtime.Object{object}, Build: remover, Script: func(*User) {}}}
	c.base = c.perform(&runPlan{Seed: 1}, limits{})
	doomed := slices.IndexFunc(c.base.changes, func(ch change) bool { return ch.doomed })
	if len(c.base.findings) > 0 || doomed < 0 {
		t.Fatalf("%v, %+v", c.base.findings, c.base.changes)
	}
	before := c.base.changes[doomed].revision - 1
	want := runFault{Kind: staleRestart, At: 2, Of: c.base.ops[atWrite][1], Revision: before}
	if !slices.ContainsFunc(c.staleRestarts().plans, func(p *runPlan) bool { return p.Faults[0] == want }) {
		t.Errorf("no plan has %v", want)
	}
}

// stamper writes the number of the process that started first, or second.
func stamper(e *Env) (Program, error) {
	c, err := client.New(e.Config(), client.Options{})
	if err != nil {
		return nil, err
	}
	return ProgramFunc(func(ctx context.Context) error {
		object := sources()[0]
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if object.Data["starts"] == "" || e.Incarnation() == 2 {
			object.Data["starts"] = fmt.Sprint(e.Incarnation())
			if err := c.Update(ctx, object); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return nil
	}), nil
}

// TestIgnore: fields of Scenario.Ignore do not count at the end.
func TestIgnore(t *testing.T) {
	s := Scenario{
		Objects: []runtime.Object{sources()[0]}, Build: stamper, Script: func(u *User) { u.Settle() },
		Allow: []Rule{RuleRest},
	}
	for _, test := range []struct {
		ignored string
		found   bool
	}{
		{"", true},
		{"configmaps default/source-0: data.star", true},
		{"configmaps default/source-0: data.starts", false},
		{"configmaps default/source-0: data", false},
	} {
		s.Ignore = []string{test.ignored}
		f, _ := Find(t, s, Options{Budget: time.Second})
		if found := f != nil; found != test.found {
			t.Errorf("with %q ignored: %v", test.ignored, f)
		}
	}
}

// resumer marks a ConfigMap, and then writes that it has done so. A process that finds only the mark writes another
// one, which lets every later process write once more.
func resumer(e *Env) (Program, error) {
	c, err := client.New(e.Config(), client.Options{})
	if err != nil {
		return nil, err
	}
	return ProgramFunc(func(ctx context.Context) error {
		object := sources()[0]
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		var changes []map[string]string
		switch d := object.Data; {
		case d["mark"] == "":
			changes = []map[string]string{{"mark": "once"}, {"mark": "once", "done": "yes"}}
		case d["done"] == "", d["mark"] != "once":
			changes = []map[string]string{{"mark": d["mark"] + " more", "done": "yes"}}
		}
		for _, change := range changes {
			object.Data = change
			if err := c.Update(ctx, object); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return nil
	}), nil
}

// TestColdRestartAfterFaults: where ends are not compared whole, a run with a fault is followed by a cold restart, too.
func TestColdRestartAfterFaults(t *testing.T) {
	const mark = "configmaps default/source-0: data.mark"
	f, _ := Find(t, Scenario{
		Objects: []runtime.Object{sources()[0]}, Build: resumer, Script: func(u *User) { u.Settle() },
		Ignore: []string{mark},
	}, Options{Budget: time.Minute, Runs: 30})
	if f == nil || f.Rule != RuleRest || !strings.Contains(f.Text, "although nothing has changed") {
		t.Error(f)
	}
}

// TestHideNothingOfList: events that are a list in the form of a watch are not hidden.
func TestHideNothingOfList(t *testing.T) {
	build := func(e *Env) (Program, error) {
		c, err := kubernetes.NewForConfig(e.Config())
		return ProgramFunc(func(ctx context.Context) error {
			w, err := c.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{
				SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true,
				ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			})
			if err != nil {
				return err
			}
			defer w.Stop()
			for range w.ResultChan() {
			}
			<-ctx.Done()
			return nil
		}), err
	}
	change := func(m *corev1.ConfigMap) { m.Data["text"] += "!" }
	c := &checker{t: t, s: &Scenario{
		Objects: []runtime.Object{sources()[0]}, Build: build, Script: func(u *User) {
			u.Settle()
			Update(u, sources()[0], change)
			Update(u, sources()[0], change)
		},
	}}
	c.base = c.perform(&runPlan{Seed: 1}, limits{})
	var hidden []string
	for _, p := range c.hiddenStates().plans {
		hidden = append(hidden, p.Faults[0].Of)
	}
	if want := []string{"modified configmaps default/source-0"}; !slices.Equal(hidden, want) {
		t.Errorf("%q are hidden, want %q; the events are %q", hidden, want, c.base.ops[atEvent])
	}
}
