package group

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A record counts the runnables that began, and those that ended.
type record struct {
	mu           sync.Mutex
	began, ended int
}

// controller writes a status when it begins, and works until one second after the end of its context.
func (r *record) controller(ctx context.Context) {
	r.mu.Lock()
	r.began++
	r.mu.Unlock()
	<-ctx.Done()
	time.Sleep(time.Second)
	r.mu.Lock()
	r.ended++
	r.mu.Unlock()
}

func (r *record) counts() (began, ended int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.began, r.ended
}

func add(t *testing.T, g *Group, r *record) {
	t.Helper()
	if err := g.Add(r.controller); err != nil {
		t.Fatalf("Add returned %v.", err)
	}
}

func Test1AFollowerThatStopsDoesNotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := New(), &record{}
		add(t, g, r)
		add(t, g, r)
		g.StopAndWait()
		if began, _ := r.counts(); began > 0 {
			t.Fatalf("The process never had the lease, so Start was never called. At its stop, %d controllers began "+
				"to work.\nAnother process has the lease, and its controllers are at work.", began)
		}
	})
}

func Test2WhatRunsIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := New(), &record{}
		add(t, g, r)
		g.Start()
		add(t, g, r)
		synctest.Wait()
		g.StopAndWait()
		if began, ended := r.counts(); began != 2 || ended != 2 {
			t.Fatalf("One controller was added before Start, and one after. %d began, and %d had ended when "+
				"StopAndWait returned.", began, ended)
		}
	})
}

func Test3ALeaseThatComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := New(), &record{}
		add(t, g, r)
		g.StopAndWait()
		g.Start()
		synctest.Wait()
		if began, _ := r.counts(); began > 0 {
			t.Errorf("The process got the lease when it had stopped already. Start began %d controller(s), and nobody "+
				"waits for them.", began)
			time.Sleep(time.Minute)
		}
	})
}

func Test4NothingIsAddedAfterTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, started := range []bool{false, true} {
			g, r := New(), &record{}
			if started {
				g.Start()
			}
			g.StopAndWait()
			err := g.Add(r.controller)
			synctest.Wait()
			if began, _ := r.counts(); began > 0 || !errors.Is(err, ErrStopped) {
				t.Errorf("The group was started: %v. After the stop, Add returned %v, and %d controller(s) began.",
					started, err, began)
			}
		}
		g, err := New(), error(nil)
		if err := g.Add(func(ctx context.Context) { <-ctx.Done(); err = g.Add(func(context.Context) {}) }); err != nil {
			t.Fatalf("Add returned %v.", err)
		}
		g.Start()
		if g.StopAndWait(); !errors.Is(err, ErrStopped) {
			t.Errorf("A controller that ends has called Add, which returned %v.", err)
		}
	})
}
