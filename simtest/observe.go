package simtest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/localapi"
)

// committed is a committed write of a cluster.
type committed struct {
	localapi.Change
	cluster string
}

func (c *committed) id() id {
	return id{resource{c.Resource.GroupResource(), c.cluster}, c.Namespace, c.Name}
}

// observe looks at what the current op has changed.
func (w *world) observe() {
	now, _ := w.store.Revision()
	if now == w.observed {
		return
	}
	w.observed = now
	var changes []committed
	for _, s := range w.servers {
		next, revision, err := s.api.Changes(s.seen)
		if err != nil {
			w.record.broken = err
			return
		}
		s.seen = revision
		for i := range next {
			changes = append(changes, committed{next[i], s.cluster})
		}
	}
	slices.SortFunc(changes, func(a, b committed) int { return cmp.Compare(a.Revision, b.Revision) })
	for i := range changes {
		w.changed(&changes[i])
	}
}

// changed takes note of one committed write.
func (w *world) changed(c *committed) {
	i := c.id()
	w.state.apply(c)
	switch {
	case c.Object == nil:
		w.lives[i][len(w.lives[i])-1].died = c.Revision
	case c.Previous == nil:
		w.lives[i] = append(w.lives[i], life{born: c.Revision})
		made := change{id: i, generated: prefixOf(c.Object), alias: w.alias(i.name)}
		known := named{i, made.fixed()}
		known.shown.name = cmp.Or(made.family(), known.shown.name)
		w.known[uidOf(c.Object)] = known
	}
	if w.first == 0 {
		return
	}
	if i.resource.Resource == "customresourcedefinitions" || i.resource.Resource == "apiservices" {
		w.redefined.Store(true)
	}
	if bookkeeping(i.resource) {
		w.leaseChanged(c)
		return
	}
	w.lastChange, w.asked = time.Now(), nil
	obj, process := cmp.Or(c.Object, c.Previous), 0
	if by := w.current.sender(); by != nil {
		process = by.number
	}
	w.record.changes = append(w.record.changes, change{
		id: i, revision: c.Revision, created: c.Previous == nil, deleted: c.Object == nil, doomed: doomed(c),
		by: w.author(c), generated: prefixOf(obj), process: process, settles: w.settles,
		alias: w.alias(i.name), owner: w.ownerOf(obj),
	})
	if by := w.current.sender(); by != nil && !by.other && w.phase > scripting && by.ctx.Err() == nil {
		w.fail(RuleRest, i.String(), fmt.Sprintf("%s writes although nothing has changed: %s", by.name(),
			w.current.signature()))
	}
	for _, name := range slices.Sorted(maps.Keys(w.scenario.Always)) {
		if err := holds(w.scenario.Always[name], w.state); err != nil {
			w.fail(RuleAlways, name, fmt.Sprintf("%s: %v", name, err))
		}
	}
}

// named is an object that has existed.
type named struct {
	id
	shown id // with a name that is the same in all runs
}

// alias returns the name with each UID of an object replaced by what the object is, or "" if there is none.
func (w *world) alias(name string) string {
	alias := uidPattern.ReplaceAllStringFunc(name, func(uid string) string {
		if o, ok := w.known[uid]; ok {
			return "<uid of " + o.shown.String() + ">"
		}
		return uid
	})
	if alias == name {
		return ""
	}
	return alias
}

// ownerOf returns the first owner of an object that is there and is not being deleted.
func (w *world) ownerOf(obj runtime.Object) owner {
	m, err := meta.Accessor(obj)
	if err != nil {
		return owner{}
	}
	for _, ref := range m.GetOwnerReferences() {
		uid := string(ref.UID)
		o := w.known[uid]
		if now := w.state.objects[o.id]; uidOf(now.object) == uid && !terminating(now.object) {
			return owner{uid, o.shown}
		}
	}
	return owner{}
}
