// Package static is the provider of a fleet whose clusters are known from the start.
package static

import (
	"context"
	"slices"

	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/providers/internal/roster"
)

// Provider announces a fixed list of clusters.
type Provider struct {
	clusters []multicluster.Announcement
	roster   roster.Roster
}

// New returns the provider of these clusters. If the fleet rejects one, because another provider has its name, Health
// names it, and the provider announces it again from time to time.
func New(clusters ...multicluster.Announcement) *Provider {
	return &Provider{clusters: slices.Clone(clusters)}
}

// Name implements the optional method of multicluster.Provider.
func (p *Provider) Name() string { return "static" }

// Health names the clusters that the fleet has rejected, and why.
func (p *Provider) Health() error { return p.roster.Health() }

// Run implements multicluster.Provider.
func (p *Provider) Run(ctx context.Context, fleet multicluster.Fleet) error {
	p.roster.Begin(fleet)
	p.roster.Found(ctx, "the list", p.clusters)
	p.roster.Complete(true)
	p.roster.Run(ctx)
	return nil
}
