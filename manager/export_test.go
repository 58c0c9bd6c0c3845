package manager

import "net"

// ListenOn makes the manager listen on l, whatever its addresses are.
func (m *Manager) ListenOn(l net.Listener) {
	m.http.Open = func(string, string) (net.Listener, error) { return l, nil }
}

// WatchSignals and OneSignal are the part of SetupSignals that handles signals.
var WatchSignals = watchSignals

const OneSignal = sameSignal
