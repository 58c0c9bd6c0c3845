package events

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// drainRetryDelay is the time between tries once the broadcaster is stopping.
const drainRetryDelay = 200 * time.Millisecond

// sender is the state of the one goroutine that sends.
type sender struct {
	*Broadcaster
	correlator *correlator
	// lastErr is why the latest try failed, nil after a success.
	lastErr error
	// awaySince is when the server stopped answering; zero while it does. An outage is two log lines, not one per try.
	awaySince time.Time
	// undelivered holds the event that was in hand when the drain timeout passed.
	undelivered []*corev1.Event
}

// run sends until the queue is closed and empty, or ctx ends.
func (s *sender) run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for {
		event, err := s.queue.take(ctx)
		if err != nil {
			return // closed and empty, or out of time: Run reports what is left
		}
		if n := s.queue.takeOverflow(); n > 0 {
			logger.Error(nil, "Events dropped: too many at once", "count", n, "queueSize", s.options.QueueSize)
		}
		logger.V(3).Info("Event occurred",
			"object", klog.KRef(event.InvolvedObject.Namespace, event.InvolvedObject.Name),
			"kind", event.InvolvedObject.Kind, "type", event.Type, "reason", event.Reason, "message", event.Message)
		out, key, filtered := s.correlator.correlate(event, time.Now())
		if filtered > 0 {
			s.queue.count(func(b *Stats) { b.Filtered++ })
			if filtered == 1 {
				logger.Info("Events about an object are not sent for a while: too many",
					"object", klog.KRef(event.InvolvedObject.Namespace, event.InvolvedObject.Name),
					"kind", event.InvolvedObject.Kind, "type", event.Type, "reason", event.Reason)
			}
			continue
		}
		s.deliver(ctx, out, key)
	}
}

// verdict is what one try to send an event came to.
type verdict int

const (
	sent     verdict = iota // the server has it
	rejected                // the server will never take it
	again                   // the server is away or overloaded
)

// deliver tries until the event is sent, refused or given up.
func (s *sender) deliver(ctx context.Context, event *corev1.Event, key sightingKey) {
	logger := klog.FromContext(ctx)
	for try := 1; ; try++ {
		result, err := s.try(ctx, event, key, try)
		switch result {
		case sent:
			s.noteAnswer(ctx)
			s.queue.count(func(b *Stats) { b.Sent++ })
			return
		case rejected:
			s.noteAnswer(ctx)
			s.queue.count(func(b *Stats) { b.Rejected++ })
			if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				logger.V(5).Info("Event rejected", "event", describe(event), "err", err)
			} else {
				logger.Error(err, "Event rejected", "event", describe(event))
			}
			return
		case again:
			s.noteFailure(ctx, err)
		}
		if try >= s.options.MaxTries && !s.isDraining() {
			s.queue.count(func(b *Stats) { b.GivenUp++ })
			logger.Error(err, "Giving up on event", "event", describe(event), "tries", try)
			return
		}
		if !s.pause(ctx, try) {
			s.queue.count(func(b *Stats) { b.Undelivered++ })
			s.undelivered = append(s.undelivered, event)
			return
		}
	}
}

// try sends the event once: a repeat as a patch of the first one, or as a new event when that one has expired.
func (s *sender) try(ctx context.Context, event *corev1.Event, key sightingKey, try int) (verdict, error) {
	client := s.server(event.Namespace)
	if event.Count > 1 {
		patch, err := repeatPatch(event)
		if err != nil {
			return rejected, err
		}
		_, err = client.Patch(ctx, event.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			return judge(err), err
		}
	}
	_, err := client.Create(ctx, wireForm(event), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return judge(err), err
	}
	if try > 1 {
		return sent, nil // an earlier try arrived; only its answer did not
	}
	// Another process took this very name in this very nanosecond.
	event.Name = s.names.next(event.InvolvedObject.Name, time.Now())
	s.correlator.remember(key, event)
	_, err = client.Create(ctx, wireForm(event), metav1.CreateOptions{})
	return judge(err), err
}

// repeatPatch makes the patch that turns the event on the server into its own repeat.
func repeatPatch(event *corev1.Event) ([]byte, error) {
	if series := seriesOf(event); series != nil {
		return json.Marshal(struct {
			Series  *corev1.EventSeries `json:"series"`
			Message string              `json:"message,omitempty"`
		}{series, event.Message})
	}
	return json.Marshal(struct {
		Count         int32       `json:"count"`
		LastTimestamp metav1.Time `json:"lastTimestamp"`
		Message       string      `json:"message,omitempty"`
	}{event.Count, event.LastTimestamp, event.Message})
}

// judge sorts the answer of the server: an answer that says "not now" and no answer at all are worth another try.
func judge(err error) verdict {
	var construction *rest.RequestConstructionError
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return sent
	case errors.As(err, &construction):
		return rejected
	case apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err),
		apierrors.IsServiceUnavailable(err), apierrors.IsInternalError(err), apierrors.IsUnexpectedServerError(err):
		return again
	case errors.As(err, &status):
		return rejected
	default:
		return again
	}
}

func (s *sender) noteFailure(ctx context.Context, err error) {
	if ctx.Err() != nil && s.lastErr != nil {
		return // the drain timeout cut this try short; the reason is the failure before it
	}
	s.lastErr = err
	if s.awaySince.IsZero() {
		s.awaySince = time.Now()
		klog.FromContext(ctx).Error(err, "Cannot send events, will retry", "queued", s.queue.snapshot().Queued)
	}
}

func (s *sender) noteAnswer(ctx context.Context) {
	s.lastErr = nil
	if !s.awaySince.IsZero() {
		klog.FromContext(ctx).Info("Sending events again", "duration", time.Since(s.awaySince))
		s.awaySince = time.Time{}
	}
}

func (s *sender) isDraining() bool {
	select {
	case <-s.queue.closed:
		return true
	default:
		return false
	}
}

// pause waits before the next try. The stop cuts a long delay short: the first try of the drain comes at once. It
// returns false when ctx ended, that is when there will be no next try.
func (s *sender) pause(ctx context.Context, try int) bool {
	delay, stop := s.options.RetryDelay, s.queue.closed
	if try == 1 {
		delay = time.Duration(float64(delay) * s.options.Random())
	}
	if s.isDraining() {
		delay, stop = min(delay, drainRetryDelay), nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stop:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
