package events

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/lru"
)

// The rules of correlation.
//
// Source: client-go v0.37.2 tools/record/events_cache.go, the constants at its top.
const (
	aggregateThreshold = 10               // so many different messages under one reason, and they are combined
	aggregateInterval  = 10 * time.Minute // a reason that was silent for longer starts afresh
	spamBurst          = 25               // events of one type about one object that go out unhindered
	spamRefill         = 5 * time.Minute  // then one more each so often
	correlatorMemory   = 4096             // keys remembered in each of the three books
)

const aggregatePrefix = "(combined from similar events): "

// correlator decides for each event whether it is new, a repeat, one of many similar ones, or spam. It is used by the
// one sending goroutine only, hence without a lock.
type correlator struct {
	names *nameSource
	// groups: groupKey -> *group, what was said lately under one reason about one object.
	groups *lru.Cache
	// sightings: sightingKey -> sighting, the event on the server that a repeat is added to.
	sightings *lru.Cache
	// budgets: budgetKey -> *budget, what a component may still say about one object.
	budgets *lru.Cache
}

// budgetKey names one component's talk of one type about one object.
type budgetKey struct {
	source                                 corev1.EventSource
	apiVersion, kind, namespace, name, uid string
	eventType                              string
}

// groupKey names events that differ by nothing but their message.
type groupKey struct {
	budgetKey
	reason, action                         string
	related                                corev1.ObjectReference
	reportingController, reportingInstance string
}

// sightingKey names events that are equal but for their time. A combined event has its group as its key, with message
// and field path empty, so that the next one is added to it whatever it says.
type sightingKey struct {
	groupKey
	combined           bool
	fieldPath, message string
}

// group is the book of one groupKey. Invariant: len(messages) < aggregateThreshold.
type group struct {
	messages sets.Set[string]
	last     time.Time
}

// sighting is what is needed to add a repeat to an event that was sent before.
type sighting struct {
	name  string
	first metav1.Time
	count int32
}

func newCorrelator(names *nameSource) *correlator {
	return &correlator{
		names:     names,
		groups:    lru.New(correlatorMemory),
		sightings: lru.New(correlatorMemory),
		budgets:   lru.New(correlatorMemory),
	}
}

func keysOf(e *corev1.Event) (groupKey, sightingKey) {
	o := e.InvolvedObject
	g := groupKey{
		budgetKey: budgetKey{
			source: e.Source, apiVersion: o.APIVersion, kind: o.Kind, namespace: o.Namespace, name: o.Name,
			uid: string(o.UID), eventType: e.Type,
		},
		reason: e.Reason, action: e.Action,
		reportingController: e.ReportingController, reportingInstance: e.ReportingInstance,
	}
	if e.Related != nil {
		g.related = *e.Related
		g.related.ResourceVersion = "" // it differs from event to event
	}
	return g, sightingKey{groupKey: g, fieldPath: o.FieldPath, message: e.Message}
}

// correlate returns the event to send and the key under which it is remembered; ok is false for spam. An event with a
// count above 1 is a repeat: it exists on the server under its name, and is to be patched.
//
// A filtered repeat is counted all the same: the next one that gets through carries the full count.
func (c *correlator) correlate(e *corev1.Event, now time.Time) (out *corev1.Event, key sightingKey, ok bool) {
	group, key := keysOf(e)
	if c.isCrowded(group, e.Message, now) {
		e = c.combine(e, now)
		key = sightingKey{groupKey: group, combined: true}
	}
	if seen, found := c.sightings.Get(key); found {
		s := seen.(sighting)
		e.Name, e.FirstTimestamp, e.Count = s.name, s.first, s.count+1
	}
	c.remember(key, e)
	return e, key, c.withinBudget(group.budgetKey, now)
}

// remember notes under which name an event is to be found on the server.
func (c *correlator) remember(key sightingKey, e *corev1.Event) {
	c.sightings.Add(key, sighting{name: e.Name, first: e.FirstTimestamp, count: e.Count})
}

// isCrowded notes the message in its group and reports whether it is one too many. The messages that came first go on
// as events of their own; every further one is combined.
func (c *correlator) isCrowded(key groupKey, message string, now time.Time) bool {
	g := &group{}
	if found, ok := c.groups.Get(key); ok {
		g = found.(*group)
	}
	if g.messages == nil || now.Sub(g.last) > aggregateInterval {
		g.messages = sets.New[string]()
	}
	g.last = now
	c.groups.Add(key, g)
	if g.messages.Has(message) {
		return false
	}
	if g.messages.Len() >= aggregateThreshold-1 {
		return true
	}
	g.messages.Insert(message)
	return false
}

// combine builds the event that stands for all further ones of its group.
func (c *correlator) combine(e *corev1.Event, now time.Time) *corev1.Event {
	stamp := metav1.NewTime(now)
	out := *e
	out.ObjectMeta = metav1.ObjectMeta{Namespace: e.Namespace, Name: c.names.next(e.InvolvedObject.Name, now)}
	out.Message = aggregatePrefix + e.Message
	if !out.EventTime.IsZero() {
		out.Message = truncated(out.Message, maxNote)
	}
	out.Count, out.FirstTimestamp, out.LastTimestamp = 1, stamp, stamp
	return &out
}

// budget is a token bucket: spamBurst tokens at first, one more every spamRefill, never more than spamBurst.
type budget struct {
	tokens float64
	at     time.Time // when tokens was right
}

// withinBudget takes one token from the budget of a component for an object, if there is one.
func (c *correlator) withinBudget(key budgetKey, now time.Time) bool {
	b := &budget{tokens: spamBurst, at: now}
	if found, ok := c.budgets.Get(key); ok {
		b = found.(*budget)
	}
	c.budgets.Add(key, b)
	refill := now.Sub(b.at).Seconds() / spamRefill.Seconds()
	b.tokens, b.at = min(b.tokens+refill, spamBurst), now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
