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
	aggregateThreshold = 10               // so many different messages under one reason, and they are combined
	aggregateInterval  = 10 * time.Minute // a reason that was silent for longer starts afresh
	spamBurst          = 25               // the default of Options.BurstSize
	spamRefill         = 5 * time.Minute  // the default of 1/Options.QPS
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
	// budgets: budgetKey, or what Options.SpamKeyFunc returns -> *budget, what a component may still say about one
	// object.
	budgets *lru.Cache
	burst   int // negative: no limit
	refill  time.Duration
	spamKey func(*corev1.Event) string // or nil
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

func newCorrelator(names *nameSource, o Options) *correlator {
	c := &correlator{
		burst:     cmp.Or(o.BurstSize, spamBurst),
		refill:    spamRefill,
		spamKey:   o.SpamKeyFunc,
		names:     names,
		groups:    lru.New(correlatorMemory),
		sightings: lru.New(correlatorMemory),
		budgets:   lru.New(correlatorMemory),
	}
	if o.QPS > 0 {
		c.refill = time.Duration(float64(time.Second) / float64(o.QPS))
	}
	return c
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

// correlate returns the event to send and the key under which it is remembered. For spam, filtered is how many events
// of the budget were not sent since one was, this one included. An event with a count above 1 is a repeat: it exists on
// the server under its name, and is to be patched.
//
// A filtered repeat is counted all the same: the next one that gets through carries the full count.
func (c *correlator) correlate(e *corev1.Event, now time.Time) (out *corev1.Event, key sightingKey, filtered int) {
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
	if c.burst < 0 {
		return e, key, 0
	}
	budget := lru.Key(group.budgetKey)
	if c.spamKey != nil {
		budget = c.spamKey(e)
	}
	return e, key, c.spend(budget, e.Reason, now)
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

// budget is a token bucket: burst tokens at first, one more every refill, never more than burst.
//
// A reason that was not sent for the time of refill needs no token, unless burst others were. So an event that is
// repeated over and over does not swallow one that comes once, such as the final one.
type budget struct {
	tokens   float64
	at       time.Time // when tokens was right
	filtered int       // since an event was sent
	// reasons is when a reason was last sent. Invariant: it has at most burst reasons.
	reasons map[string]time.Time
}

// spend takes one token from a budget if there is one. It returns 0 if the event may be sent, and otherwise how many
// events were filtered since the last one that was sent.
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
