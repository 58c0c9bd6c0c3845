package manager

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
)

// The names that controller-runtime's manager has for these things, so that SetupWithManager methods written for it compile. Each
// is a name for a method that is here as well.

// GetClient is [Manager.Cluster].
func (m *Manager) GetClient() *client.Cluster { return m.cluster }

// GetFieldIndexer is [Manager.Cluster], for its IndexField.
func (m *Manager) GetFieldIndexer() *client.Cluster { return m.cluster }

// GetAPIReader is APIReader of [Manager.Cluster]: it reads from the server, also before the manager runs.
func (m *Manager) GetAPIReader() client.Reader { return m.cluster.APIReader() }

// GetScheme is [Manager.Scheme].
func (m *Manager) GetScheme() *runtime.Scheme { return m.Scheme() }

// GetConfig is [Manager.Config].
func (m *Manager) GetConfig() *rest.Config { return m.Config() }

// GetRESTMapper is [Manager.RESTMapper].
func (m *Manager) GetRESTMapper() meta.RESTMapper { return m.RESTMapper() }

// GetEventRecorderFor is [Manager.Recorder].
func (m *Manager) GetEventRecorderFor(component string) events.Recorder { return m.Recorder(component) }
