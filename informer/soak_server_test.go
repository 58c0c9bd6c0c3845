package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/listwatch"
)

// chronicle is an API server of one resource with a history. It is small, so that a soak measures the memory of the
// informer: an object is a few numbers until it is read, and then made anew, as decoding does.
//
// A list is taken at one version and read page by page. A watch reads the history from its position. Both work as long
// as the history reaches back that far. The purpose of this server is to cut watches and to forget its history.
type chronicle struct {
	mu sync.Mutex
	// version is that of the last write. history has the writes after forgotten: history[i] has the version
	// forgotten+1+i.
	version, forgotten int
	history            []entryState
	// states has the objects by number. Version 0 means that there is none.
	states []entryState
	uids   int
	// moved is nil unless a watch waits. The next write, cut or compaction closes it; nothing is sent.
	moved chan struct{}
	// era counts the cuts. cutBy is the error for watches of an earlier era.
	era   int
	cutBy error
	// pages has the unfinished lists.
	pages map[string]listing
	lists int
	// refuses makes the next list that is bounded by a version fail. forgets loses the rest of the next paged list.
	refuses, forgets bool
	rand             *rand.Rand
}

// entryState is one state of one object.
type entryState struct{ object, uid, version, kind int32 }

// The kinds of entries in the history.
const (
	written int32 = iota
	deleted
)

// listing is a list of which at least one page was read.
type listing struct {
	version int
	states  []entryState
}

func newChronicle(objects int, seed uint64) *chronicle {
	c := &chronicle{
		states: make([]entryState, objects), pages: map[string]listing{},
		rand: rand.New(rand.NewPCG(seed, 1)),
	}
	for i := range objects {
		c.write(i)
	}
	c.forget()
	return c
}

// change writes, deletes or creates again an object.
func (c *chronicle) change() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changeLocked()
}

func (c *chronicle) changeLocked() {
	i := c.rand.IntN(len(c.states))
	switch was := c.states[i]; {
	case was.version == 0 || c.rand.IntN(10) > 0:
		c.write(i)
	default:
		c.version++
		c.append(entryState{int32(i), was.uid, int32(c.version), deleted})
		c.states[i] = entryState{}
		if c.rand.IntN(2) == 0 {
			c.write(i)
		}
	}
}

func (c *chronicle) write(i int) {
	uid := c.states[i].uid
	if c.states[i].version == 0 {
		c.uids++
		uid = int32(c.uids)
	}
	c.version++
	c.states[i] = entryState{int32(i), uid, int32(c.version), written}
	c.append(c.states[i])
}

func (c *chronicle) append(e entryState) {
	c.history = append(c.history, e)
	c.wake()
}

func (c *chronicle) wake() {
	if c.moved != nil {
		close(c.moved)
		c.moved = nil
	}
}

// cut ends all watches with err.
func (c *chronicle) cut(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.era++
	c.cutBy = err
	c.wake()
}

// compact ends all watches. Before they can resume it writes something and forgets the history, so every watcher has to
// list again. With hard even that fails until the list asks for the newest state, and then the rest of the list is
// lost.
func (c *chronicle) compact(hard bool) {
	c.cut(c.anyCut())
	c.mu.Lock()
	defer c.mu.Unlock()
	for range 10 {
		c.changeLocked()
	}
	c.forget()
	c.refuses, c.forgets = hard, hard
	c.wake()
}

func (c *chronicle) forget() {
	c.forgotten, c.history = c.version, nil
	clear(c.pages)
}

// at returns the present versions and UIDs, by number.
func (c *chronicle) at() []entryState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]entryState(nil), c.states...)
}

// made returns the object.
func (e entryState) made() object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "o" + strconv.Itoa(int(e.object)), UID: types.UID(strconv.Itoa(int(e.uid))),
		ResourceVersion: strconv.Itoa(int(e.version)),
	}}
}

// event returns the event.
func (e entryState) event(kind listwatch.EventType) listwatch.Event[object] {
	if e.kind == deleted {
		kind = listwatch.Removed
	}
	return listwatch.Event[object]{Type: kind, Object: e.made(), ResourceVersion: strconv.Itoa(int(e.version))}
}

// List takes a millisecond per page, so that things happen between pages.
func (c *chronicle) List(ctx context.Context, o listwatch.ListOptions,
	yield func(object) error,
) (listwatch.ListResult, error) {
	time.Sleep(time.Millisecond)
	page, result, err := c.page(o)
	if err != nil {
		return result, err
	}
	for _, e := range page {
		if err := yield(e.made()); err != nil {
			return result, err
		}
	}
	return result, ctx.Err()
}

func (c *chronicle) page(o listwatch.ListOptions) ([]entryState, listwatch.ListResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, known := c.pages[o.Continue]
	switch {
	case o.Continue != "" && c.forgets:
		c.forgets = false
		return nil, listwatch.ListResult{}, errExpired
	case o.Match != "" && c.refuses:
		c.refuses = false
		return nil, listwatch.ListResult{}, errExpired
	case o.Continue == "":
		l = c.snapshot()
	case !known:
		return nil, listwatch.ListResult{}, errExpired
	}
	delete(c.pages, o.Continue)
	result := listwatch.ListResult{ResourceVersion: strconv.Itoa(l.version)}
	page := l.states
	if n := int(o.Limit); n > 0 && len(page) > n {
		c.lists++
		result.Continue = "t" + strconv.Itoa(c.lists)
		c.pages[result.Continue] = listing{l.version, page[n:]}
		page = page[:n]
	}
	return page, result, nil
}

func (c *chronicle) snapshot() listing {
	l := listing{version: c.version}
	for _, e := range c.states {
		if e.version > 0 {
			l.states = append(l.states, e)
		}
	}
	return l
}

func (c *chronicle) Watch(_ context.Context, o listwatch.WatchOptions) (listwatch.Watch[object], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &reading{of: c, era: c.era}
	if o.SendInitialEvents && o.ResourceVersion != "" && c.refuses {
		c.refuses = false
		return nil, errExpired
	}
	if o.SendInitialEvents {
		w.initial = c.snapshot()
		w.ends = true
		w.position = w.initial.version
		return w, nil
	}
	var err error
	if w.position, err = strconv.Atoi(o.ResourceVersion); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("resource version %q", o.ResourceVersion))
	}
	return w, nil
}

// reading is a watch: a position in the history.
type reading struct {
	of       *chronicle
	era      int
	position int
	// initial is the rest of a streamed list. ends is true until its end was sent.
	initial listing
	ends    bool
}

func (w *reading) Next(ctx context.Context) (listwatch.Event[object], error) {
	for {
		ev, wait, err := w.step()
		if wait == nil {
			return ev, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return listwatch.Event[object]{}, ctx.Err()
		}
	}
}

// step returns the next event, or a channel that is closed when there may be one.
func (w *reading) step() (ev listwatch.Event[object], wait <-chan struct{}, err error) {
	c := w.of
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case w.era != c.era:
		return ev, nil, c.cutBy
	case len(w.initial.states) == 1 && c.forgets:
		c.forgets = false
		return ev, nil, io.EOF
	case len(w.initial.states) > 0:
		ev = w.initial.states[0].event(listwatch.Added)
		w.initial.states = w.initial.states[1:]
		return ev, nil, nil
	case w.ends:
		w.ends = false
		return listwatch.Event[object]{
				Type: listwatch.Bookmark, ResourceVersion: strconv.Itoa(w.initial.version), InitialEventsEnd: true,
			},
			nil, nil
	case w.position < c.forgotten:
		return ev, nil, errExpired
	case w.position > c.version:
		return ev, nil, errors.New("a version that never was")
	case w.position == c.version:
		if c.moved == nil {
			c.moved = make(chan struct{})
		}
		return ev, c.moved, nil
	}
	ev = c.history[w.position-c.forgotten].event(listwatch.Modified)
	w.position++
	return ev, nil, nil
}

func (w *reading) Close() error { return nil }

// anyCut returns an error that a watch can end with; most often it is the end in good order.
func (c *chronicle) anyCut() error {
	switch c.rand.IntN(8) {
	case 0:
		return errors.New("connection reset")
	case 1:
		return apierrors.NewInternalError(errors.New("etcd is not there"))
	case 2:
		return io.ErrUnexpectedEOF
	default:
		return io.EOF
	}
}
