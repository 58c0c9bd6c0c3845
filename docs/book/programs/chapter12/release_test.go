package chapter12

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/manager/leader"
)

// TestChapter12Release stops a leader whose work takes six seconds more, with client-go's elector and with ours. The
// other candidate has our elector in both runs.
func TestChapter12Release(t *testing.T) {
	text, aside := "", map[string]bool{}
	for _, elector := range []string{"client-go's elector, which releases on cancel", "ours"} {
		synctest.Test(t, func(t *testing.T) {
			d, srv := newDiary(), &server{cut: map[string]bool{}}
			all, end := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
			ctx, stop := context.WithCancel(all)
			defer stop()
			bLeads := make(chan struct{})
			work := func(begun, asked context.Context) {
				d.note("a leads; its work begins")
				<-asked.Done()
				time.Sleep(6 * time.Second)
				select {
				case <-bLeads:
					aside[elector] = true
					d.note("a's work writes, beside b, and ends")
				default:
					d.note("a's work writes, and ends")
				}
			}
			done := make(chan struct{}, 2)
			go func() {
				defer func() { done <- struct{}{} }()
				l := &lock{name: "a", server: srv, released: func() { d.note("a gives the lease back") }}
				if elector == "ours" {
					runOurs(ctx, t, l, func(tenure context.Context) { work(tenure, ctx) })
				} else {
					runClientGos(ctx, t, l, func(ctx context.Context) { work(ctx, ctx) })
				}
			}()
			time.Sleep(700 * time.Millisecond)
			go func() {
				defer func() { done <- struct{}{} }()
				runOurs(all, t, &lock{name: "b", server: srv}, func(context.Context) {
					d.note("b leads")
					close(bLeads)
					<-all.Done()
				})
			}()
			time.Sleep(2300 * time.Millisecond)
			d.note("a is asked to stop")
			stop()
			time.Sleep(20 * time.Second)
			end()
			<-done
			<-done
			text += fmt.Sprintf("%s\n%s\n", elector, d)
		})
	}
	if len(aside) != 1 || aside["ours"] {
		t.Errorf("a wrote beside b with %v", aside)
	}
	book.Trace(t, page, text)
}

func runOurs(ctx context.Context, t *testing.T, l *lock, work func(tenure context.Context)) {
	elector, err := leader.New(ours{l}, leader.Options{Random: func() float64 { return 0 }})
	if err != nil {
		t.Error(err)
		return
	}
	if err := elector.Run(ctx, func(tenure context.Context) error { work(tenure); return nil }); err != nil {
		t.Error(err)
	}
}

func runClientGos(ctx context.Context, t *testing.T, l *lock, work func(context.Context)) {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l, LeaseDuration: leaseDuration, RenewDeadline: 10 * time.Second, RetryPeriod: retryPeriod,
		ReleaseOnCancel: true,
		Callbacks:       leaderelection.LeaderCallbacks{OnStartedLeading: work, OnStoppedLeading: func() {}},
	})
	if err != nil {
		t.Error(err)
		return
	}
	elector.Run(ctx)
}
