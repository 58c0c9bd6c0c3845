package controllerruntime

import (
	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// GetEventRecorderFor returns a recorder for a component. It records through Options.EventBroadcaster, or else through
// Flyball's sender.
func (m *Manager) GetEventRecorderFor(name string) record.EventRecorder {
	//lint:ignore SA1019 It may be set.
	b := m.o.EventBroadcaster
	if b == nil {
		return m.core.GetEventRecorderFor(name)
	}
	m.sink.Do(func() { // The caller stops it.
		events := corev1client.NewForConfigOrDie(m.core.GetConfig()).Events("") // The core has made clients of it.
		b.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: events})
	})
	return b.NewRecorder(m.o.Cache.Scheme, corev1.EventSource{Component: name})
}

// GetEventRecorder returns a recorder of events with an action and a second object. It records through Flyball's
// sender.
func (m *Manager) GetEventRecorder(name string) recorder.EventRecorder {
	return m.core.GetEventRecorder(name)
}
