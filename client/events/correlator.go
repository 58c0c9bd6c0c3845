package events

import (
	"cmp"
	"maps"
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
	aggregateThreshold = 10               // the number of different messages with one reason at which they are combined
	aggregateInterval  = 10 * time.Minute // silence after which the messages of a reason are counted from zero again
	spamBurst          = 25               // the default of Options.BurstSize
	spamRefill         = 5 * time.Minute  // the default of 1/Options.QPS
	correlatorMemory   = 4096             // keys in each of the three caches of a correlator
)

const aggregatePrefix = "(combined from similar events): "

// correlator decides for each event whether it is new, a repetition, one of many similar ones, or spam.
//
// Concurrency: only the sending goroutine uses it.
type correlator struct {
	names *nameSource
	// groups maps a groupKey to its *group: the latest messages with one reason about one object.
	groups *lru.Cache
	// created maps a createdKey to its createdEvent: the event on the server to which a repetition is added.
	created *lru.Cache
	// budgets maps a budgetKey, or the result of Options.SpamKeyFunc, to its *budget.
	budgets *lru.Cache
	burst   int // negative: no limit
	refill  time.Duration
	spamKey func(*corev1.Event) string // or nil
}

// budgetKey is equal for the events of one type that one component records about one object.
type budgetKey struct {
	source                                 corev1.EventSource
	apiVersion, kind, namespace, name, uid string
	eventType                              string
}

// groupKey is equal for events that differ only in their message.
type groupKey struct {
	budgetKey
	reason, action                         string
	related                                corev1.ObjectReference
	reportingController, reportingInstance string
}

// createdKey is equal for events that differ only in their time. A combined event has no message and no field path in
// its key, so that all further events of its group are added to it.
type createdKey struct {
	groupKey
	combined           bool
	fieldPath, message string
}

// group has the messages of the events with one groupKey. Invariant: len(messages) < aggregateThreshold.
type group struct {
	messages sets.Set[string]
	last     time.Time
}

// createdEvent is the part of a created event that is needed to add a repetition to it.
type createdEvent struct {
	name  string
	time  metav1.Time
	count int32
}

func newCorrelator(names *nameSource, o Options) *correlator {
	c := &correlator{
		burst:   cmp.Or(o.BurstSize, spamBurst),
		refill:  spamRefill,
		spamKey: o.SpamKeyFunc,
		names:   names,
		groups:  lru.New(correlatorMemory),
		created: lru.New(correlatorMemory),
		budgets: lru.New(correlatorMemory),
	}
	if o.QPS > 0 {
		c.refill = time.Duration(float64(time.Second) / float64(o.QPS))
	}
	return c
}

func keysOf(e *corev1.Event) (groupKey, createdKey) {
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
	return g, createdKey{groupKey: g, fieldPath: o.FieldPath, message: e.Message}
}

// correlate returns the event to send and the key under which it is remembered. An event with a count above 1 is a
// repetition: the server has an event of that name, which is to be patched. filtered is 0 unless the event is spam.
// Then it is the number of events of the same budget, this one included, that were filtered since the last one was
// sent.
//
// A filtered repetition counts as well: the next one that is sent has the full count.
func (c *correlator) correlate(e *corev1.Event, now time.Time) (out *corev1.Event, key createdKey, filtered int) {
	group, key := keysOf(e)
	if c.isCrowded(group, e.Message, now) {
		e = c.combine(e, now)
		key = createdKey{groupKey: group, combined: true}
	}
	if found, ok := c.created.Get(key); ok {
		first := found.(createdEvent)
		e.Name, e.FirstTimestamp, e.Count = first.name, first.time, first.count+1
	}
	c.remember(key, e)
	if c.burst < 0 {
		return e, key, 0
	}
	budget := lru.Key(group.budgetKey)
	if c.spamKey != nil {
		budget = c.spamKey(e)
	}
	return e, key, c.spend(budget, e.Reason, now)
}

// remember records the name that an event has on the server.
func (c *correlator) remember(key createdKey, e *corev1.Event) {
	c.created.Add(key, createdEvent{name: e.Name, time: e.FirstTimestamp, count: e.Count})
}

// isCrowded adds the message to its group and reports whether the group is full. The messages that came first stay
// events of their own; every further one is combined.
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

// combine returns the event to which all further events of the group are added.
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

// budget is a token bucket. It begins with burst tokens and gets one every refill, up to burst.
//
// A reason that was not sent for the time of refill needs no token, unless burst others were sent in that time. So an
// event that is repeated over and over does not suppress one that comes once, such as the final one.
type budget struct {
	tokens   float64
	at       time.Time // the time of tokens
	filtered int       // events since the last one that was sent
	// reasons has the time when each reason was last sent. Invariant: it has at most burst reasons.
	reasons map[string]time.Time
}

// spend takes a token from a budget if it has one. It returns 0 if the event may be sent, and otherwise how many events
// were filtered since the last one that was sent.
func (c *correlator) spend(key lru.Key, reason string, now time.Time) (filtered int) {
	b := &budget{tokens: float64(c.burst), at: now, reasons: map[string]time.Time{}}
	if found, ok := c.budgets.Get(key); ok {
		b = found.(*budget)
	}
	c.budgets.Add(key, b)
	refill := now.Sub(b.at).Seconds() / c.refill.Seconds()
	b.tokens, b.at = min(b.tokens+refill, float64(c.burst)), now
	maps.DeleteFunc(b.reasons, func(_ string, sent time.Time) bool { return now.Sub(sent) >= c.refill })
	_, recent := b.reasons[reason]
	if fresh := !recent && len(b.reasons) < c.burst; b.tokens < 1 && !fresh {
		b.filtered++
		return b.filtered
	}
	if b.filtered = 0; b.tokens >= 1 {
		b.tokens--
	}
	if recent || len(b.reasons) < c.burst {
		b.reasons[reason] = now
	}
	return 0
}
