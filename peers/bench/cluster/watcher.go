package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	clientcache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/peers/upstream"
)

// effect is what the watcher reports: it saw the effect of a step so much later than the write.
type effect struct {
	Step    string
	Seconds float64
}

// tracker finds, in what the watches send, how long after each write its effect came. The time that a watch takes is in
// both, and does not count.
type tracker struct {
	report func(effect)

	mu     sync.Mutex
	states map[string]*state // By the object's name.
}

// state is what was seen of an object.
type state struct {
	step string
	at   time.Time // When the step was first seen.
	// done reports whether the object itself is as the step wants it; want and child are what its child should hold and
	// holds. Reported is set when all this was reported.
	done        bool
	want, child string
	reported    bool
}

// see notes the step of an object, what the object wants its child to hold, and whether the object itself is done.
func (t *tracker) see(name, step, want string, done bool) {
	t.change(name, func(s *state) {
		if s.step != step {
			s.step, s.at, s.reported = step, time.Now(), false
		}
		s.want, s.done = want, done
	})
}

// seeChild notes what an object's child holds; empty if there is no child.
func (t *tracker) seeChild(name, holds string) { t.change(name, func(s *state) { s.child = holds }) }

func (t *tracker) change(name string, change func(s *state)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states[name]
	if s == nil {
		s = &state{}
		t.states[name] = s
	}
	change(s)
	if s.done && s.child == s.want && !s.reported {
		s.reported = true
		t.report(effect{s.step, time.Since(s.at).Seconds()})
	}
}

// RunWatcher watches the load's objects until ctx is done. It writes "ready" to out, then each effect as JSON.
func RunWatcher(ctx context.Context, config *rest.Config, l *Load, out io.Writer) error {
	c, err := cache.New(config, cache.Options{Scheme: l.Scheme})
	if err != nil {
		return err
	}
	lines := json.NewEncoder(out)
	t := &tracker{states: map[string]*state{}, report: func(e effect) { _ = lines.Encode(e) }}
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	for kind, see := range l.watched {
		inf, err := c.GetInformer(ctx, kind)
		if err != nil {
			return err
		}
		_, err = inf.AddEventHandler(clientcache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { see(t, obj.(informer.Object), false) },
			UpdateFunc: func(_, obj any) { see(t, obj.(informer.Object), false) },
			DeleteFunc: func(obj any) {
				if lost, ok := obj.(clientcache.DeletedFinalStateUnknown); ok {
					obj = lost.Obj
				}
				see(t, obj.(informer.Object), true)
			},
		})
		if err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "ready")
	return <-ended
}

// watcher is the process that watches.
type watcher struct {
	cmd *exec.Cmd
	// effects come from the goroutine that reads the process's output; it closes the channel at the end of that. There
	// is room for those of a step, so the process does not wait for the load.
	effects chan effect
}

// startWatcher starts the process and waits until it watches. Stop ends it.
func startWatcher(ctx context.Context, l *Load, program, kubeconfig string) (*watcher, error) {
	cmd := exec.CommandContext(ctx, program, "-be", "watcher", "-load", l.Name, "-kubeconfig", kubeconfig)
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, upstream.ChildAttributes()
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w, in := &watcher{cmd, make(chan effect, l.Wave+1)}, bufio.NewReader(pipe)
	_, err = in.ReadString('\n') // "ready"
	go func() {
		defer close(w.effects)
		d := json.NewDecoder(in)
		for e := (effect{}); d.Decode(&e) == nil; {
			w.effects <- e
		}
	}()
	if err != nil {
		w.stop()
		return nil, fmt.Errorf("the watcher: %w", err)
	}
	return w, nil
}

// patience is how long the load waits for the next effect.
const patience = 2 * time.Minute

// await returns the seconds that the effects of a step took on n objects.
func (w *watcher) await(step string, n int) (times []float64, err error) {
	for len(times) < n {
		select {
		case e, open := <-w.effects:
			if !open {
				return nil, fmt.Errorf("%s: the watcher ended", step)
			}
			if e.Step == step {
				times = append(times, e.Seconds)
			}
		case <-time.After(patience):
			return nil, fmt.Errorf("%s: %d of %d objects are done, and no other for %s", step, len(times), n, patience)
		}
	}
	return times, nil
}

func (w *watcher) stop() {
	_ = w.cmd.Process.Kill() // It has nothing to save.
	for range w.effects {
	}
	_ = w.cmd.Wait()
}
