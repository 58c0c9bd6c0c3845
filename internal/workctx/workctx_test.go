package workctx

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

type value struct{}

func TestOwnDeadlineBeginsAtTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(context.WithValue(t.Context(), value{}, "kept"))
		work, release := From(ctx, 5*time.Second)
		defer release()
		time.Sleep(time.Hour)
		if work.Err() != nil || work.Value(value{}) != "kept" {
			t.Fatalf("before the stop: %v, value %v", work.Err(), work.Value(value{}))
		}
		stop()
		begin := time.Now()
		<-work.Done()
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("work ended %s after the stop, want 5s", took)
		}
	})
}

func TestTheProcessSetsTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		process, end := context.WithCancel(context.WithoutCancel(t.Context()))
		ctx, stop := context.WithCancel(context.WithValue(With(t.Context(), process), value{}, "kept"))
		work, release := From(ctx, time.Second)
		defer release()
		stop()
		time.Sleep(time.Hour) // its own deadline does not count
		if work.Err() != nil || work.Value(value{}) != "kept" {
			t.Errorf("before the process's deadline: %v, value %v", work.Err(), work.Value(value{}))
		}
		end()
		synctest.Wait()
		if work.Err() == nil {
			t.Error("work lives on after the process's deadline")
		}
	})
}

// Release ends the work and its timer, in every state, and may be called again; the bubble sees what is left over.
func TestReleaseLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, stopFirst := range []bool{false, true} {
			ctx, stop := context.WithCancel(t.Context())
			work, release := From(ctx, time.Hour)
			if stopFirst {
				stop()
				synctest.Wait()
			}
			release()
			release()
			if work.Err() == nil {
				t.Error("work lives on after release")
			}
			stop()
		}
	})
}
