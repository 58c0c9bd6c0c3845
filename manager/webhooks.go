package manager

import (
	"crypto/tls"
	"fmt"
	"slices"

	"github.com/flyball-dev/flyball/manager/internal/rotation"
	"github.com/flyball-dev/flyball/manager/webhook"
)

// addWebhooks makes the server of webhooks. If the manager keeps its certificate, it also adds the controllers that do.
func (m *Manager) addWebhooks() (err error) {
	o := m.options.Webhook
	if o.Port > 65535 {
		return fmt.Errorf("Options.Webhook.Port is %d: want at most 65535, or -1 to serve no webhooks", o.Port)
	}
	if metrics, ok := m.options.Metrics.(webhook.Metrics); ok && o.Metrics == nil {
		o.Metrics = metrics
	}
	if o.Certificates.Secret == "" {
		m.hooks = webhook.NewServer(o)
		return nil
	}
	if o.Certificates, err = rotation.Defaults(o.Certificates); err != nil {
		return err
	}
	m.keeper = rotation.NewKeeper(o.Certificates)
	o.TLSOpts = append(slices.Clone(o.TLSOpts), func(c *tls.Config) { c.GetCertificate = m.keeper.GetCertificate })
	m.hooks = webhook.NewServer(o)
	in := rotation.Cluster{
		Informers: m.informers, Client: m.cluster, Reader: m.GetAPIReader(), Metrics: m.QueueMetrics(),
	}
	follower, err := rotation.NewFollower(m.keeper, in)
	if err != nil {
		return err
	}
	rotator, err := rotation.NewRotator(m.keeper, in, o.Certificates)
	if err != nil {
		return err
	}
	if err := m.Add(follower); err != nil {
		return err
	}
	return m.Add(rotator)
}

// GetWebhookServer returns the server of webhooks, which Run runs once a webhook is registered. All replicas serve,
// whoever leads.
func (m *Manager) GetWebhookServer() *webhook.Server { return m.hooks }

// endWebhooks ends the server, which waits for requests in flight.
func (m *Manager) endWebhooks(hooks *part) error {
	return hooks.end(m.hooks.DrainTimeout() + partTimeout)
}

func (m *Manager) checkWebhooks() check {
	c := check{name: "webhooks"}
	if err := m.hooks.Health(); err != nil {
		c.problem = err.Error()
		return c
	}
	c.note = m.hooks.Note()
	if m.keeper == nil {
		return c
	}
	if c.note == "" {
		c.note = m.keeper.Note()
	}
	return c
}
