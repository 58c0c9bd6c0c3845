package informer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
	"github.com/flyball-dev/flyball/internal/versions"
)

// FuzzPipeline runs the operations that a list of bytes encodes: changes, deletions, states that cannot be decoded,
// repeated events, cut connections, compactions, errors, a server restored from a backup, handlers that join late, are
// slow or leave; with streamed lists or not, for all namespaces or several. In the end the cache and each handler must
// have exactly the server's objects, and no call of a handler may contradict an earlier one.
func FuzzPipeline(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("000111222"))
	f.Add([]byte{0x00, 0x10, 0x60, 0x08, 0x00, 0x70, 0x01, 0x08, 0x00, 0x50, 0xb0, 0x90, 0x10, 0x00, 0xa0})
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i * 37)
	}
	f.Add(all)
	f.Add([]byte{0x0a, 0x19, 0x00, 0x38, 0x0a, 0x3d, 0xc1, 0x3a, 0x68, 0x0a, 0x3b, 0x71, 0x39, 0x3f})
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 400 {
			t.Skip("longer is not different")
		}
		var mode byte
		if len(ops) > 0 {
			mode = ops[0]
		}
		synctest.Test(t, func(t *testing.T) { newModel(t, mode&1 != 0, mode&2 != 0).run(ops) })
	})
}

// model is an informer under a list of operations, with what must be true of it.
type model struct {
	t        *testing.T
	server   *server
	informer *SharedInformer[object]
	ledgers  []*ledger
	// restored is true once the server's history went back. Versions may then go back, too.
	restored bool
}

func newModel(t *testing.T, stream, split bool) *model {
	s := newServer()
	m := &model{t: t, server: s}
	lws := map[string]listwatch.ListerWatcher[object]{"": s}
	if split {
		lws = map[string]listwatch.ListerWatcher[object]{"default": within{s, "default"}, "other": within{s, "other"}}
	}
	m.informer = NewSharedInformerOfNamespaces(lws, Options[object]{
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
	l := &ledger{t: m.t, objects: map[string]object{}, restored: &m.restored}
	var err error
	if l.reg, err = m.informer.AddHandler(l.handler(),
		HandlerOptions{Name: fmt.Sprint("handler", len(m.ledgers)), MaxLag: len(m.ledgers)%3 - 1}); err != nil {
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
			synctest.Wait() // Otherwise the next operation would begin in the middle of this one.
		}
	}
	for _, l := range m.ledgers {
		l.release()
	}
	m.settle()
	m.check()
	cancel()
	running.Wait()
}

func (m *model) do(op byte, arg int) {
	name, namespace := string(rune('a'+arg)), []string{"default", "other"}[arg%2]
	last := m.ledgers[len(m.ledgers)-1]
	switch op {
	default:
		m.server.putIn(namespace, name)
	case 1:
		m.server.repeat(arg)
	case 2:
		m.server.garble(namespace, name)
	case 3:
		m.restore(arg)
	case 4, 5:
		if m.server.has(namespace, name) {
			m.server.removeIn(namespace, name)
		}
	case 6:
		m.server.cut(
			[]error{
				errClosed, errExpired, scriptedError("reset"), scriptedError("500"), scriptedError("decode"),
				scriptedError("429"), scriptedError("403"), errClosed,
			}[arg],
		)
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

// settle gives the informer time to catch up with the server.
func (m *model) settle() {
	m.server.recover()
	time.Sleep(10 * time.Minute) // All backoffs end, and half-open watches are given up.
	m.server.bookmark(0)
	synctest.Wait()
	// A silent watch may be given up just when a bookmark arrives. Servers send more than one.
	time.Sleep(time.Second)
	m.server.bookmark(0)
	synctest.Wait()
	if rv := m.informer.ResourceVersion(); rv != strconv.Itoa(m.server.rv) {
		m.t.Errorf("watermark %s, server at %d, health %v", rv, m.server.rv, m.informer.Health().Err)
	}
}

// restore takes the server back, and assigns versions again that the informer has seen. Fewer than were lost, or the
// informer could not notice.
func (m *model) restore(arg int) {
	m.settle()
	was := m.server.rv
	back := min(arg, was-max(1, m.server.compacted))
	m.server.restore(was - back)
	m.restored = true
	for i := 1; i < back && i <= arg/2; i++ {
		m.server.putIn("default", string(rune('a'+2*(i%3))))
	}
	m.server.cut([]error{scriptedError("reset"), errClosed}[arg%2])
	m.settle()
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
	unreadable := 0
	for key, o := range want {
		if garbled(o) == nil {
			continue
		}
		unreadable++
		delete(want, key)
		// The cache may hold an earlier state of that very object.
		if held := got[key]; held != nil && held.UID == o.UID && garbled(held) == nil &&
			(m.restored || versions.Earlier(held.ResourceVersion, o.ResourceVersion)) {
			want[key] = held
		}
	}
	var relists int64
	for _, n := range m.informer.Stats().RelistReasons {
		relists += n
	}
	if st := m.informer.Stats(); st.Relists != relists {
		m.t.Errorf("not every relist has its reason: %+v", st)
	}
	if h := m.informer.Health(); h.Unreadable != unreadable {
		m.t.Errorf("%d objects cannot be decoded, health %+v", unreadable, h)
	}
	for _, o := range want {
		if v := o.ResourceVersion; (v[len(v)-1]-'0')%2 == 1 {
			odd = append(odd, o.Name)
		}
	}
	if !maps.Equal(got, want) {
		m.t.Errorf("cache %v, server %v, health %v", got, want, m.informer.Health().Err)
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

// ledger is a handler that keeps its own cache from its calls, and reports calls that are not possible.
type ledger struct {
	brake
	t       *testing.T
	reg     Registration
	mu      sync.Mutex
	objects map[string]object
	// restored reports whether versions may go back; nil means false.
	restored *bool
}

// mayFollow reports whether o may be the state after old.
func (l *ledger) mayFollow(old, o object) bool {
	return versions.Earlier(old.ResourceVersion, o.ResourceVersion) || (l.restored != nil && *l.restored && old != o)
}

func (l *ledger) handler() Handler[object] {
	return Handler[object]{
		OnAdd: func(o object, _ bool) {
			l.pass()
			l.mu.Lock()
			defer l.mu.Unlock()
			if had := l.objects[Key(o)]; had != nil {
				l.t.Errorf("%s: add %s, but it knows %s", l.reg.Name(), show(o), show(had))
			}
			l.objects[Key(o)] = o
		},
		OnUpdate: func(old, o object) {
			l.pass()
			l.mu.Lock()
			defer l.mu.Unlock()
			if had := l.objects[Key(o)]; had != old || old.UID != o.UID || !l.mayFollow(old, o) {
				l.t.Errorf("%s: update %s -> %s, but it knows %v", l.reg.Name(), show(old), show(o), had)
			}
			l.objects[Key(o)] = o
		},
		OnDelete: func(d Deleted[object]) {
			l.pass()
			l.mu.Lock()
			defer l.mu.Unlock()
			if had := l.objects[d.Key]; had == nil || had.UID != d.Object.UID {
				l.t.Errorf("%s: delete %s, but it knows %v", l.reg.Name(), show(d.Object), had)
			}
			delete(l.objects, d.Key)
		},
	}
}

// within is the server as a client sees it that may read one namespace only.
type within struct {
	*server
	namespace string
}

func (w within) List(ctx context.Context, o listwatch.ListOptions,
	yield func(object) error,
) (listwatch.ListResult, error) {
	report := o.Unreadable
	o.Unreadable = func(e *objects.DecodeError) {
		if strings.HasPrefix(e.Key, w.namespace+"/") {
			report(e)
		}
	}
	return w.server.List(ctx, o, func(obj object) error {
		if obj.Namespace != w.namespace {
			return nil
		}
		return yield(obj)
	})
}

func (w within) Watch(ctx context.Context, o listwatch.WatchOptions) (listwatch.Watch[object], error) {
	all, err := w.server.Watch(ctx, o)
	if err != nil {
		return nil, err
	}
	return watchFunc(func(ctx context.Context) (listwatch.Event[object], error) {
		for {
			ev, err := all.Next(ctx)
			key := ""
			switch {
			case ev.Unreadable != nil:
				key = ev.Unreadable.Key
			case ev.Object != nil:
				key = Key(ev.Object)
			}
			if key == "" || strings.HasPrefix(key, w.namespace+"/") {
				return ev, err
			}
		}
	}), nil
}
