package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/providers/internal/kubeconf"
	"github.com/flyball-dev/flyball/multicluster/providers/internal/roster"
)

// Options configure how files become clusters. The zero value works.
type Options struct {
	// EveryContext makes every context of every file of a directory a cluster, FILE/CONTEXT, not only the current ones.
	EveryContext bool
	// Name returns the name for the cluster of a context; "" ignores the context. file is the name without directory
	// and extension, "" if a single file is watched. Nil: see EveryContext and the package comment, with "-" for
	// characters that a cluster's name cannot have.
	Name func(file, context string) string
	// Labels are the labels of the cluster of a context; nil: none.
	Labels func(file, context string) map[string]string
	// Interval is the time between two checks of the files. Zero means a second.
	Interval time.Duration
}

// Provider announces the clusters of a file, or of the files of a directory.
type Provider struct {
	path   string
	o      Options
	roster roster.Roster
}

// New returns the provider of the kubeconfig at path, or of those in the directory at path. It need not exist yet.
func New(path string, o Options) *Provider {
	if o.Interval <= 0 {
		o.Interval = time.Second
	}
	return &Provider{path: path, o: o}
}

// Name implements the optional method of multicluster.Provider.
func (p *Provider) Name() string { return "kubeconfig" }

// Health reports which files or contexts cannot be used, and why.
func (p *Provider) Health() error { return p.roster.Health() }

// Run implements multicluster.Provider.
func (p *Provider) Run(ctx context.Context, fleet multicluster.Fleet) error {
	p.roster.Begin(fleet)
	files := watched{files: map[string]file{}}
	p.roster.Complete(p.look(ctx, &files))
	ctx, cancel := context.WithCancel(ctx)
	retried := make(chan struct{}) // closed by the goroutine below when it ends
	go func() {
		defer close(retried)
		p.roster.Run(ctx)
	}()
	defer func() { cancel(); <-retried }()
	tick := time.NewTicker(p.o.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			p.look(ctx, &files)
		}
	}
}

// watched are the files as the last check found them.
type watched struct {
	files map[string]file
	// looked reports whether a check has found the files.
	looked bool
}

// file is the state of a file at the last check, and whether that state was read.
type file struct {
	info os.FileInfo
	read bool
}

// same reports whether two checks found the same state of the same file. The time stamp is at least one check old, so
// it distinguishes later writes, however coarse the file system's clock is.
func same(a, b os.FileInfo) bool {
	return a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && os.SameFile(a, b)
}

// look reads the changed files. It returns false when the files cannot be listed.
func (p *Provider) look(ctx context.Context, w *watched) bool {
	paths, directory, err := p.list()
	if err != nil {
		w.files = nil // A file that comes back is read.
		p.roster.Broken(ctx, p.path, err)
		return false
	}
	if directory {
		p.roster.Found(ctx, p.path, nil) // It can be read (again).
	}
	for _, place := range p.roster.Places() {
		if place != p.path && !slices.Contains(paths, place) {
			p.roster.Gone(place)
		}
	}
	now := map[string]file{}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err == nil && info.IsDir() {
			continue
		}
		if err != nil {
			p.roster.Broken(ctx, path, plain(err))
			continue
		}
		old, known := w.files[path]
		still := known && same(old.info, info)
		// The first check reads everything, and the next one again, because a file may have been half written.
		if still && !old.read || !w.looked {
			p.read(ctx, path, directory)
		}
		now[path] = file{info: info, read: still}
	}
	w.files, w.looked = now, true
	return true
}

// list returns the files to check.
func (p *Provider) list() (paths []string, directory bool, err error) {
	info, err := os.Stat(p.path)
	if err != nil {
		return nil, false, plain(err)
	}
	if !info.IsDir() {
		return []string{p.path}, false, nil
	}
	entries, err := os.ReadDir(p.path)
	if err != nil {
		return nil, false, plain(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			paths = append(paths, filepath.Join(p.path, e.Name()))
		}
	}
	return paths, true, nil
}

// read announces the clusters in a file.
func (p *Provider) read(ctx context.Context, path string, directory bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		p.roster.Broken(ctx, path, plain(err))
		return
	}
	contexts, current, err := kubeconf.Read(data, kubeconf.Source{Path: path})
	if err != nil {
		p.roster.Broken(ctx, path, err)
		return
	}
	name := ""
	if directory {
		name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		if !p.o.EveryContext {
			i := slices.IndexFunc(contexts, func(c kubeconf.Context) bool { return c.Name == current })
			if i < 0 {
				p.roster.Broken(ctx, path, fmt.Errorf("its current context %q does not exist", current))
				return
			}
			contexts = contexts[i : i+1]
		}
	}
	var clusters []multicluster.Announcement
	var unusable []roster.Unusable
	for _, c := range contexts {
		cluster := p.name(name, c.Name)
		switch {
		case cluster == "":
		case c.Err != nil:
			unusable = append(unusable, roster.Unusable{Name: cluster, Err: c.Err})
		default:
			a := multicluster.Announcement{Name: cluster, Identity: c.Identity, Config: c.Config}
			if p.o.Labels != nil {
				a.Labels = p.o.Labels(name, c.Name)
			}
			clusters = append(clusters, a)
		}
	}
	p.roster.Found(ctx, path, clusters, unusable...)
}

func (p *Provider) name(file, context string) string {
	switch {
	case p.o.Name != nil:
		return p.o.Name(file, context)
	case file == "":
		return kubeconf.ClusterName(context)
	case p.o.EveryContext:
		return kubeconf.ClusterName(file + "/" + context)
	}
	return kubeconf.ClusterName(file)
}

// plain returns an error of the file system without the path, which precedes it anyway.
func plain(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return fmt.Errorf("%s: %w", e.Op, e.Err)
	}
	return err
}
