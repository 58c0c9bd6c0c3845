package multicluster

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// mostLent is how many reconciles of one controller may take long, beside those that workers are busy with.
const mostLent = 64

// defaultHungAfter is that of package reconcile.
const defaultHungAfter = 10 * time.Minute

// lending watches how long one reconcile takes. When it takes long, its worker is replaced; when it hangs, that is told.
type lending struct {
	controller *Controller
	key        key

	mu    sync.Mutex
	timer *time.Timer
	over  bool
	hangs bool
}

// watch begins to look at the reconcile of k.
func (c *Controller) watch(ctx context.Context, k key) *lending {
	l := &lending{controller: c, key: k}
	began, hung := time.Now(), c.parts.hungAfter()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch lend := c.parts.fleet.options.LendAfter; {
	case lend > 0:
		l.timer = time.AfterFunc(lend, func() {
			l.during(func() {
				c.inner.Rearrange(func() { c.order.Lend(k) })
				if hung > 0 {
					l.timer = time.AfterFunc(max(hung-lend, 0), func() { l.tell(ctx, began) })
				}
			})
		})
	case hung > 0:
		l.timer = time.AfterFunc(hung, func() { l.tell(ctx, began) })
	}
	return l
}

// during calls f unless the reconcile is over, which it cannot be before f has returned.
func (l *lending) during(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		f()
	}
}

func (l *lending) tell(ctx context.Context, began time.Time) {
	l.during(func() {
		l.hangs = true
		c := l.controller
		c.hung.Add(1)
		c.mu.Lock()
		c.long[l.key] = began
		c.mu.Unlock()
		klog.FromContext(ctx).Error(nil, "Reconcile hangs: its key is blocked, and a worker of its cluster", "key", l.key, "duration", time.Since(began))
	})
}

// end says that the reconcile has returned.
func (l *lending) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.hangs {
		l.controller.mu.Lock()
		defer l.controller.mu.Unlock()
		delete(l.controller.long, l.key)
	}
}
