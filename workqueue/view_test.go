package workqueue_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

func show(keys []workqueue.KeyView[string]) string {
	out := ""
	for _, v := range keys {
		out += fmt.Sprintf("%s %v %d causes, priority %d, attempt %d; ", v.Key, v.Time, len(v.Causes), v.Priority,
			v.Attempt)
		if len(v.Again) > 0 {
			out += "again because of " + v.Again[0].Event + "; "
		}
	}
	return out
}

func TestView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[string]{QueueingTime: true})
		defer q.ShutDown()
		q.AddWithCause("worked on", workqueue.Cause{Event: "Add"})
		time.Sleep(time.Second)
		get(t, q)
		q.AddRateLimited("worked on")
		q.AddWithCause("worked on", workqueue.Cause{Event: "Update"})
		addWithPriority(q, "ready", 3)
		for i := 30; i > 0; i-- {
			q.AddAfter(fmt.Sprint("delayed-", i), time.Duration(i)*time.Minute)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		q.Add("beyond the limit 1")
		q.Add("beyond the limit 2")
		v := q.View(2)
		for _, c := range []struct{ got, want string }{
			{
				show(v.Ready),
				"ready 1s 0 causes, priority 3, attempt 0; beyond the limit 1 0s 0 causes, priority 0, attempt 0; ",
			},
			{show(v.Processing), "worked on 1s 1 causes, priority 0, attempt 1; again because of Update; "},
			{
				show(v.Delayed),
				"delayed-1 59s 0 causes, priority 0, attempt 0; delayed-2 1m59s 0 causes, priority 0, attempt 0; ",
			},
		} {
			if c.got != c.want {
				t.Errorf("\n got %s\nwant %s", c.got, c.want)
			}
		}
		if v := q.View(100); len(v.Delayed) != 30 || v.Delayed[29].Key != "delayed-30" {
			t.Errorf("all delays: got %d", len(v.Delayed))
		}
		if v := workqueue.New(workqueue.Options[string]{}).View(5); v.Ready != nil || v.Processing != nil ||
			v.Delayed != nil {
			t.Errorf("an empty queue: got %+v", v)
		}
	})
}
