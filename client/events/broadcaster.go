package events

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/groupclient"
)

// Options tunes a [Broadcaster]. The zero value works.
type Options struct {
	// Scheme names the kind of objects that do not say it themselves. Nil means client-go's scheme of built-in types.
	Scheme *runtime.Scheme
	// QueueSize is how many events may wait to be sent. Zero means 1000.
	QueueSize int
	// MaxTries is how often one event is sent before it is given up, while the server is away. Zero means 12.
	MaxTries int
	// RetryDelay is the time between two tries. The first retry comes after a random part of it, so that processes
	// do not return in step after an outage. Zero means 10 s.
	RetryDelay time.Duration
	// DrainTimeout is how long Run goes on sending after its context ended. Zero means 5 s; negative means not at all.
	DrainTimeout time.Duration
	// BurstSize is how many events of one type a component may send about one object in a burst, and QPS how many more
	// per second after that. A reason that was not sent for 1/QPS is sent even so, but only BurstSize different ones
	// are in that time. The first event that is not sent is logged, and all of them are counted in Stats.Filtered.
	// Zero means 25, and one in five minutes; a negative BurstSize means no limit.
	//
	// Source: client-go v0.37.2 tools/record, CorrelatorOptions.
	BurstSize int
	QPS       float32
	// SpamKeyFunc names what has a budget of BurstSize. Nil means each type of event, object and component.
	SpamKeyFunc func(*corev1.Event) string
	// Random returns numbers in [0,1) for the first retry. Nil means math/rand/v2; the simulator passes its own.
	Random func() float64
}

func (o Options) withDefaults() Options {
	if o.Scheme == nil {
		o.Scheme = scheme.Scheme
	}
	if o.QueueSize <= 0 {
		o.QueueSize = 1000
	}
	if o.MaxTries <= 0 {
		o.MaxTries = 12
	}
	if o.RetryDelay <= 0 {
		o.RetryDelay = 10 * time.Second
	}
	if o.DrainTimeout == 0 {
		o.DrainTimeout = 5 * time.Second
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return o
}

// Broadcaster takes events from any number of recorders and sends them to the API server, in the order of recording.
//
// Its books keep to client-go's rules of correlation. It differs in five ways, each for not losing events: what is
// queued at the stop is sent, not discarded; a server that answers 429, 5xx or "timeout" is tried again, not only one
// that does not answer; two events in one tick of the clock get two names; an answer lost on its way is not a second
// event; and which of many similar events are combined does not depend on the iteration order of a map.
//
// Concurrency: every method may be called from any goroutine. Events may be recorded before Run: they wait.
//
// Source: client-go v0.37.2 tools/record/event.go.
type Broadcaster struct {
	// server returns a client of the events of a namespace.
	server  func(namespace string) eventClient
	options Options
	queue   *queue
	names   *nameSource
	started atomic.Bool
}

// eventClient writes the events of one namespace.
type eventClient interface {
	Create(ctx context.Context, event *corev1.Event, o metav1.CreateOptions) (*corev1.Event, error)
	Patch(ctx context.Context, name string, form types.PatchType, patch []byte, o metav1.PatchOptions,
		subresources ...string) (*corev1.Event, error)
}

// New returns a broadcaster that sends to the API server of config. It starts nothing: see [Broadcaster.Run].
//
// Errors: a config from which no client can be made.
func New(config *rest.Config, o Options) (*Broadcaster, error) {
	if config == nil {
		return nil, errors.New("events: the config is nil: it names the cluster to send to")
	}
	server, err := groupclient.New(config, corev1.SchemeGroupVersion)
	if err != nil {
		return nil, fmt.Errorf("events: new client: %w", err)
	}
	return newBroadcaster(func(namespace string) eventClient {
		return groupclient.Resource[*corev1.Event](server, "events", namespace)
	}, o), nil
}

func newBroadcaster(server func(namespace string) eventClient, o Options) *Broadcaster {
	o = o.withDefaults()
	return &Broadcaster{server: server, options: o, queue: newQueue(o.QueueSize), names: &nameSource{}}
}

// Recorder returns the recorder of a component. Its events carry the name as their source and reporting controller.
func (b *Broadcaster) Recorder(component string) Recorder {
	return &componentRecorder{broadcaster: b, component: component}
}

// Stats tells what became of every event recorded so far.
func (b *Broadcaster) Stats() Stats { return b.queue.snapshot() }

// Stats counts recorded events by what became of them.
//
// Invariant: Recorded is the sum of all others, but for the one event that is being sent at this moment.
type Stats struct {
	Recorded    int // handed to a recorder
	Queued      int // waiting
	Sent        int // created or added to an earlier one, acknowledged by the server
	Filtered    int // over the budget of their component for their object; see Options.BurstSize
	Rejected    int // refused by the server for a reason that trying again does not cure
	GivenUp     int // the server stayed away for MaxTries tries
	Overflowed  int // the queue was full
	Invalid     int // not an event: unknown type, or an object that cannot be referred to
	Late        int // recorded after the stop
	Undelivered int // still unsent when the drain timeout passed
}

// Lost is how many events will never reach the server although nothing was wrong with them.
func (s Stats) Lost() int { return s.GivenUp + s.Overflowed + s.Late + s.Undelivered }

// undeliveredError says which events were left when the drain timeout of a stopping [Broadcaster] passed.
type undeliveredError struct {
	// Events are the unsent events, oldest first.
	Events []*corev1.Event
	// Cause is why the first of them could not be sent; nil when there was no time to try.
	Cause error
}

const undeliveredShown = 5

// Error names the first few events and counts the rest.
func (e *undeliveredError) Error() string {
	var shown []string
	for i, event := range e.Events {
		if i == undeliveredShown {
			shown = append(shown, fmt.Sprintf("and %d more", len(e.Events)-i))
			break
		}
		shown = append(shown, describe(event))
	}
	text := fmt.Sprintf("%d events not delivered: %s", len(e.Events), strings.Join(shown, ", "))
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *undeliveredError) Unwrap() error { return e.Cause }

func describe(e *corev1.Event) string {
	o := e.InvolvedObject
	return fmt.Sprintf("%s %s/%s %s", o.Kind, o.Namespace, o.Name, e.Reason)
}

// Run sends until ctx ends, then closes the intake and sends what is left, for at most Options.DrainTimeout.
//
// Errors: an error that names the events that were left; one when called twice.
func (b *Broadcaster) Run(ctx context.Context) error {
	if !b.started.CompareAndSwap(false, true) {
		return errors.New("events broadcaster: Run called twice")
	}
	// Requests outlive the stop: they end with their answer, or at the deadline of the drain.
	sendCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s := &sender{Broadcaster: b, correlator: newCorrelator(b.names, b.options)}

	done := make(chan struct{}) // closed by the sending goroutine when it is over
	go func() {
		defer close(done)
		s.run(sendCtx)
	}()
	<-ctx.Done()
	b.queue.close()
	deadline := time.NewTimer(max(b.options.DrainTimeout, 0))
	defer deadline.Stop()
	select {
	case <-done:
	case <-deadline.C:
		cancel()
		<-done
	}

	left := s.undelivered
	if left = append(left, b.queue.abandon()...); len(left) > 0 {
		return &undeliveredError{Events: left, Cause: s.lastErr}
	}
	if late := b.queue.takeOverflow(); late > 0 {
		klog.FromContext(ctx).Error(nil, "Events dropped: too many at once", "count", late)
	}
	return nil
}
