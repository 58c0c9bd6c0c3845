package chapter02

import (
	"context"
	"net/url"
)

// A mirror is a copy of the server's objects: names and versions. Position is the version up to which it has seen
// everything.
type mirror struct {
	objects  map[string]string
	position string
}

// list makes the mirror as the server is.
func (m *mirror) list(ctx context.Context, c client) error {
	all, err := c.list(ctx, url.Values{})
	if err != nil {
		return err
	}
	m.objects, m.position = map[string]string{}, all.Metadata.ResourceVersion
	for _, o := range all.Items {
		m.objects[o.Metadata.Name] = o.Metadata.ResourceVersion
	}
	return nil
}

// apply makes one change.
func (m *mirror) apply(e event) {
	switch e.Type {
	case "ADDED", "MODIFIED":
		m.objects[e.Object.Metadata.Name] = e.Object.Metadata.ResourceVersion
	case "DELETED":
		delete(m.objects, e.Object.Metadata.Name)
	}
	m.position = e.Object.Metadata.ResourceVersion // A bookmark has nothing but this.
}

// listThenWatch is the first design: a list, and a watch after it.
func (m *mirror) listThenWatch(ctx context.Context, c client, meanwhile func()) error {
	if err := m.list(ctx, c); err != nil {
		return err
	}
	meanwhile()
	return c.watch(ctx, url.Values{}, m.apply)
}

// watchFromList is the protocol: the watch begins where the list was taken.
func (m *mirror) watchFromList(ctx context.Context, c client, meanwhile func()) error {
	if err := m.list(ctx, c); err != nil {
		return err
	}
	meanwhile()
	return c.watch(ctx, url.Values{"resourceVersion": {m.position}}, m.apply)
}
