package events

import (
	"cmp"
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

// Options configures a [Broadcaster]. The zero value works.
type Options struct {
	// Scheme maps Go types to kinds. Nil means client-go's scheme of built-in types.
	Scheme *runtime.Scheme
	// QueueSize is how many events may wait to be sent. Zero means 1000.
	QueueSize int
	// MaxTries is how often Run tries to send an event while the server does not answer. Zero means 12.
	MaxTries int
	// RetryDelay is the time between two tries. The first retry comes after a random part of it, so that processes
	// do not return in step after an outage. Zero means 10 s.
	RetryDelay time.Duration
	// DrainTimeout is how long Run goes on sending after its context ended. Zero means 5 s; negative means not at all.
	DrainTimeout time.Duration
	// BurstSize is how many events of one type a component may send about one object in a burst. QPS is how many more
	// it may send per second after that. Beyond that an event is sent only if its reason was not sent for 1/QPS, and
	// only for BurstSize different reasons in that time. The first event that is not sent is logged, and all of them
	// are counted in Stats.Filtered. Zero means 25, and one in five minutes; a negative BurstSize means no limit.
	//
	// Source: client-go v0.37.2 tools/record, CorrelatorOptions.
	BurstSize int
	QPS       float32
	// SpamKeyFunc returns the key of the budget that an event counts against. Nil means one budget for each type of
	// event, object and component.
	SpamKeyFunc func(*corev1.Event) string
	// Random returns numbers in [0,1) for the delay of the first retry. Nil means math/rand/v2; the simulator passes
	// its own.
	Random func() float64
}

func (o Options) withDefaults() Options {
	o.Scheme = cmp.Or(o.Scheme, scheme.Scheme)
	o.QueueSize = cmp.Or(max(o.QueueSize, 0), 1000)
	o.MaxTries = cmp.Or(max(o.MaxTries, 0), 12)
	o.RetryDelay = cmp.Or(max(o.RetryDelay, 0), 10*time.Second)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, 5*time.Second)
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return o
}

// Broadcaster takes events from any number of recorders and sends them to the API server, in the order of recording.
//
// It correlates events by the rules of client-go, and differs from it in five ways:
//
//   - When it stops it sends the queued events; client-go discards them.
//   - It tries again when the server answers 429, 5xx or "timeout", not only when there is no answer.
//   - Two events in one tick of the clock get two names.
//   - An event whose answer was lost is not created twice.
//   - Which of many similar events are combined does not depend on the iteration order of a map.
//
// Concurrency: every method may be called from any goroutine. Events may be recorded before Run: they wait.
//
// Source: client-go v0.37.2 tools/record/event.go.
type Broadcaster struct {
	// server returns the client for the events of a namespace.
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
// Errors: an invalid config.
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

// Recorder returns the recorder of a component. Its name is the source and the reporting controller of the events.
func (b *Broadcaster) Recorder(component string) Recorder {
	return &componentRecorder{broadcaster: b, component: component}
}

// Stats returns the counters of the events recorded so far.
func (b *Broadcaster) Stats() Stats { return b.queue.snapshot() }

// Stats counts recorded events by their outcome.
//
// Invariant: Recorded is the sum of the other counters, plus one while an event is being sent.
type Stats struct {
	Recorded    int // all
	Queued      int // waiting
	Sent        int // created, or added to an earlier event, and acknowledged by the server
	Filtered    int // over the budget of their component for their object; see Options.BurstSize
	Rejected    int // refused by the server, for a reason that another try does not change
	GivenUp     int // not answered by the server in MaxTries tries
	Overflowed  int // recorded while the queue was full
	Invalid     int // of an unknown type, or about an object that has no reference
	Late        int // recorded after the stop
	Undelivered int // not sent when the drain timeout passed
}

// Lost returns how many valid events will never reach the server.
func (s Stats) Lost() int { return s.GivenUp + s.Overflowed + s.Late + s.Undelivered }

// undeliveredError is the error of a [Broadcaster] whose drain timeout passed before all events were sent.
type undeliveredError struct {
	// Events are the unsent events, oldest first.
	Events []*corev1.Event
	// Cause is the error of the first of them; nil if there was no time to send it.
	Cause error
}

// undeliveredShown is how many events the error names.
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

// Run sends events until ctx ends. Then it closes the queue and sends the events in it, for at most
// Options.DrainTimeout.
//
// Errors: an error that names the events that were not sent; an error on a second call.
func (b *Broadcaster) Run(ctx context.Context) error {
	if !b.started.CompareAndSwap(false, true) {
		return errors.New("events broadcaster: Run called twice")
	}
	// Requests outlive ctx: they end with their answer, or at the deadline of the drain.
	sendCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s := &sender{Broadcaster: b, correlator: newCorrelator(b.names, b.options)}

	done := make(chan struct{}) // closed by the sending goroutine when it ends
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
