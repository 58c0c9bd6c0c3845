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

	"github.com/flyball-dev/flyball/internal/closed"
)

// drainRetryDelay is the time between tries once the broadcaster is stopping.
const drainRetryDelay = 200 * time.Millisecond

// sender is the state of the one goroutine that sends.
type sender struct {
	*Broadcaster
	correlator *correlator
	// lastErr is the error of the latest try; nil after a success.
	lastErr error
	// awaySince is when the server stopped answering; zero while it answers. An outage takes two log lines, however
	// many tries fail.
	awaySince time.Time
	// undelivered has the event that was being sent when the drain timeout passed.
	undelivered []*corev1.Event
}

// run sends until the queue is closed and empty, or ctx ends.
func (s *sender) run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for {
		event, err := s.queue.take(ctx)
		if err != nil {
			return // Run reports the events that are left.
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

// outcome is the result of one try to send an event.
type outcome int

const (
	sent     outcome = iota // the server has the event
	rejected                // the server will never accept the event
	again                   // the server does not answer, or is overloaded
)

// deliver tries until the event is sent, rejected or given up.
func (s *sender) deliver(ctx context.Context, event *corev1.Event, key createdKey) {
	logger := klog.FromContext(ctx)
	for try := 1; ; try++ {
		result, err := s.try(ctx, event, key, try)
		switch result {
		case sent:
			s.serverAnswered(ctx)
			s.queue.count(func(b *Stats) { b.Sent++ })
			return
		case rejected:
			s.serverAnswered(ctx)
			s.queue.count(func(b *Stats) { b.Rejected++ })
			if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				logger.V(5).Info("Event rejected", "event", describe(event), "err", err)
			} else {
				logger.Error(err, "Event rejected", "event", describe(event))
			}
			return
		case again:
			s.serverFailed(ctx, err)
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

// try sends the event once. A repetition is a patch of the first event, or a new event if the first one has expired.
func (s *sender) try(ctx context.Context, event *corev1.Event, key createdKey, try int) (outcome, error) {
	client := s.server(event.Namespace)
	if event.Count > 1 {
		patch, err := repeatPatch(event)
		if err != nil {
			return rejected, err
		}
		_, err = client.Patch(ctx, event.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			return outcomeOf(err), err
		}
	}
	_, err := client.Create(ctx, wireForm(event), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return outcomeOf(err), err
	}
	if try > 1 {
		return sent, nil // The answer to an earlier try was lost.
	}
	// Another process used the same name in the same nanosecond.
	event.Name = s.names.next(event.InvolvedObject.Name, time.Now())
	s.correlator.remember(key, event)
	_, err = client.Create(ctx, wireForm(event), metav1.CreateOptions{})
	return outcomeOf(err), err
}

// repeatPatch returns the patch that adds a repetition to the event on the server.
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

// outcomeOf returns the outcome of a request. Another try is worthwhile if the server refused it for the moment only,
// or did not answer.
func outcomeOf(err error) outcome {
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

// serverFailed records a try without an answer, and logs the first one of an outage.
func (s *sender) serverFailed(ctx context.Context, err error) {
	if ctx.Err() != nil && s.lastErr != nil {
		return // The drain timeout cut this try short. The cause is the error before it.
	}
	s.lastErr = err
	if s.awaySince.IsZero() {
		s.awaySince = time.Now()
		klog.FromContext(ctx).Error(err, "Cannot send events, will retry", "queued", s.queue.snapshot().Queued)
	}
}

// serverAnswered records the end of an outage.
func (s *sender) serverAnswered(ctx context.Context) {
	s.lastErr = nil
	if !s.awaySince.IsZero() {
		klog.FromContext(ctx).Info("Sending events again", "duration", time.Since(s.awaySince))
		s.awaySince = time.Time{}
	}
}

func (s *sender) isDraining() bool { return closed.Is(s.queue.closed) }

// pause waits before the next try. When the broadcaster stops, the pause ends at once, so that the drain begins with a
// try. It returns false if ctx has ended: then there is no next try.
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
