package informer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"
)

// FuzzPipeline does to an informer whatever a list of bytes says: changes, deletions, cuts, compactions, refusals, late, slow and
// leaving handlers. In the end the cache must be what the server holds, and so must be what each handler was told, of
// which no single call may contradict those before.
func FuzzPipeline(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("000111222"))
	f.Add([]byte{0x00, 0x10, 0x60, 0x08, 0x00, 0x70, 0x01, 0x08, 0x00, 0x50, 0xb0, 0x90, 0x10, 0x00, 0xa0})
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i * 37)
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 400 {
			t.Skip("longer is not different")
		}
		stream := len(ops) > 0 && ops[0]&1 == 1
		synctest.Test(t, func(t *testing.T) { newModel(t, stream).run(ops) })
	})
}

// model is an informer under a list of operations, and what is known to be true of it.
type model struct {
	t        *testing.T
	server   *server
	informer *SharedInformer[object]
	ledgers  []*ledger
}

func newModel(t *testing.T, stream bool) *model {
	s := newServer()
	m := &model{t: t, server: s}
	m.informer = NewSharedInformer[object](s, Options[object]{
		Resource: "pods", PageSize: 2, StreamLists: stream, Backoff: Backoff{Rand: func() float64 { return 0 }},
		Indexes: map[string]IndexFunc[object]{"odd": func(o object) ([]string, error) {
			if (o.ResourceVersion[len(o.ResourceVersion)-1]-'0')%2 == 1 {
				return []string{"odd", "odd", o.Name}, nil
			}
			return nil, nil
		}},
	})
	m.join()
	return m
}

func (m *model) join() {
	l := &ledger{t: m.t, objects: map[string]object{}}
	var err error
	if l.reg, err = m.informer.AddHandler(l.handler(), HandlerOptions{Name: fmt.Sprint("handler", len(m.ledgers)), MaxLag: len(m.ledgers)%3 - 1}); err != nil {
		m.t.Fatal(err)
	}
	m.ledgers = append(m.ledgers, l)
}

func (m *model) run(ops []byte) {
	ctx, cancel := context.WithCancel(klog.NewContext(m.t.Context(), klog.Logger{}))
	var running sync.WaitGroup
	running.Go(func() { _ = m.informer.Run(ctx) })
	for _, op := range ops {
		m.do(op>>4, int(op&7))
		if op&8 != 0 {
			synctest.Wait() // Else the next operation falls into the middle of this one.
		}
	}
	for _, l := range m.ledgers {
		l.release()
	}
	m.server.recover()
	time.Sleep(10 * time.Minute) // All backoffs end, and half-open watches are given up.
	synctest.Wait()
	m.check()
	cancel()
	running.Wait()
}

func (m *model) do(op byte, arg int) {
	name := string(rune('a' + arg))
	last := m.ledgers[len(m.ledgers)-1]
	switch op {
	default:
		m.server.put(name)
	case 4, 5:
		if m.server.has(name) {
			m.server.remove(name)
		}
	case 6:
		m.server.cut([]error{errClosed, errExpired, scriptedError("reset"), scriptedError("500"), scriptedError("decode"), scriptedError("429"), scriptedError("403"), errClosed}[arg])
	case 7:
		m.server.compact()
	case 8:
		m.server.fail([]error{nil, errExpired}, nil)
	case 9:
		m.server.fail(nil, []error{scriptedError("refused"), errExpired})
	case 10:
		m.server.bookmark(0)
	case 11:
		if len(m.ledgers) < 6 {
			m.join()
		}
	case 12:
		m.ledgers[arg%len(m.ledgers)].hold()
	case 13:
		m.ledgers[arg%len(m.ledgers)].release()
	case 14:
		ctx, cancel := context.WithTimeout(m.t.Context(), time.Second)
		defer cancel()
		if len(m.ledgers) > 1 {
			_ = m.informer.RemoveHandler(ctx, last.reg)
			last.release()
			synctest.Wait()
			m.ledgers = m.ledgers[:len(m.ledgers)-1]
		}
	case 15:
		time.Sleep(time.Duration(arg) * time.Second)
	}
}

// check compares the cache, its indexes and the ledgers with the server.
func (m *model) check() {
	m.server.mu.Lock()
	want := maps.Clone(m.server.objects)
	m.server.mu.Unlock()
	got := map[string]object{}
	var odd []string
	for o := range m.informer.All() {
		got[Key(o)] = o
	}
	for _, o := range want {
		if v := o.ResourceVersion; (v[len(v)-1]-'0')%2 == 1 {
			odd = append(odd, o.Name)
		}
	}
	if !maps.Equal(got, want) {
		m.t.Errorf("cache %v, server %v, health %v", got, want, m.informer.Health().Err)
	}
	if rv := m.informer.ResourceVersion(); older(rv, fmt.Sprint(m.server.rv)) && len(want) > 0 && m.server.history != nil {
		last := m.server.history[len(m.server.history)-1].ResourceVersion
		if older(rv, last) {
			m.t.Errorf("watermark %s, server at %s", rv, last)
		}
	}
	indexed, err := m.informer.ByIndex("odd", "odd")
	if err != nil {
		m.t.Fatal(err)
	}
	var names []string
	for _, o := range indexed {
		names = append(names, o.Name)
	}
	slices.Sort(names)
	slices.Sort(odd)
	if !slices.Equal(names, odd) {
		m.t.Errorf("index %v, want %v", names, odd)
	}
	for _, l := range m.ledgers {
		l.mu.Lock()
		if !maps.Equal(l.objects, want) {
			m.t.Errorf("%s was told %v, server %v", l.reg.Name(), l.objects, want)
		}
		l.mu.Unlock()
		if !l.reg.HasSynced() || l.reg.Stats().Pending != 0 {
			m.t.Errorf("%s: synced %v, %+v", l.reg.Name(), l.reg.HasSynced(), l.reg.Stats())
		}
	}
}

// ledger is a handler that keeps a cache of its own from what it is told, and complains about calls that make no sense.
type ledger struct {
	t       *testing.T
	reg     *Registration
	mu      sync.Mutex
	objects map[string]object
	gate    chan struct{} // As recorder.gate.
}

func (l *ledger) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gate == nil {
		l.gate = make(chan struct{})
	}
}

func (l *ledger) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gate != nil {
		close(l.gate)
		l.gate = nil
	}
}

func (l *ledger) wait() {
	l.mu.Lock()
	gate := l.gate
	l.mu.Unlock()
	if gate != nil {
		<-gate
	}
	l.mu.Lock()
}

func (l *ledger) handler() Handler[object] {
	return Handler[object]{
		OnAdd: func(o object, _ bool) {
			l.wait()
			defer l.mu.Unlock()
			if had := l.objects[Key(o)]; had != nil {
				l.t.Errorf("%s: add %s, but it knows %s", l.reg.Name(), show(o), show(had))
			}
			l.objects[Key(o)] = o
		},
		OnUpdate: func(old, o object) {
			l.wait()
			defer l.mu.Unlock()
			if had := l.objects[Key(o)]; had != old || old.UID != o.UID || !older(old.ResourceVersion, o.ResourceVersion) {
				l.t.Errorf("%s: update %s -> %s, but it knows %v", l.reg.Name(), show(old), show(o), had)
			}
			l.objects[Key(o)] = o
		},
		OnDelete: func(d Deleted[object]) {
			l.wait()
			defer l.mu.Unlock()
			if had := l.objects[d.Key]; had == nil || had.UID != d.Object.UID {
				l.t.Errorf("%s: delete %s, but it knows %v", l.reg.Name(), show(d.Object), had)
			}
			delete(l.objects, d.Key)
		},
	}
}
