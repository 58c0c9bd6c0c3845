package manager

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
)

// These methods have the names of controller-runtime's manager, so that SetupWithManager methods written for it
// compile. Each is another name for a method of [Manager].

// GetClient is [Manager.Cluster].
func (m *Manager) GetClient() *client.Cluster { return m.cluster }

// GetFieldIndexer is [Manager.Cluster], for its IndexField.
func (m *Manager) GetFieldIndexer() *client.Cluster { return m.cluster }

// GetAPIReader is APIReader of [Manager.Cluster]. It reads from the server, even before the manager runs.
func (m *Manager) GetAPIReader() client.Reader { return m.cluster.APIReader() }

// GetScheme is [Manager.Scheme].
func (m *Manager) GetScheme() *runtime.Scheme { return m.Scheme() }

// GetConfig is [Manager.Config].
func (m *Manager) GetConfig() *rest.Config { return m.Config() }

// GetRESTMapper is [Manager.RESTMapper].
func (m *Manager) GetRESTMapper() meta.RESTMapper { return m.RESTMapper() }

// GetEventRecorderFor is [Manager.Recorder].
func (m *Manager) GetEventRecorderFor(component string) events.Recorder { return m.Recorder(component) }
