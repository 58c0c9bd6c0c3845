package providers

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
)

// KubeconfigOptions configure how files become clusters. The zero value works.
type KubeconfigOptions struct {
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

// kubeconfigs finds the clusters of a file, or of the files of a directory.
type kubeconfigs struct {
	*Provider
	path string
	o    KubeconfigOptions
	// files are the files as the last check found them; nil when it found none.
	files map[string]file
	// looked reports whether a check of this run has found the files.
	looked bool
}

// NewKubeconfig returns the provider of the clusters in the kubeconfig at path, or in those in the directory at path.
// It need not exist yet.
func NewKubeconfig(path string, o KubeconfigOptions) *Provider {
	if o.Interval <= 0 {
		o.Interval = time.Second
	}
	p := &Provider{name: "kubeconfig"}
	p.find = func(ctx context.Context) error {
		(&kubeconfigs{Provider: p, path: path, o: o}).follow(ctx)
		return nil
	}
	return p
}

// follow checks the files until ctx is done.
func (p *kubeconfigs) follow(ctx context.Context) {
	p.roster.complete(p.look(ctx))
	ctx, cancel := context.WithCancel(ctx)
	retried := make(chan struct{}) // closed by the goroutine below when it ends
	go func() {
		defer close(retried)
		p.roster.run(ctx)
	}()
	defer func() { cancel(); <-retried }()
	tick := time.NewTicker(p.o.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.look(ctx)
		}
	}
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
func (p *kubeconfigs) look(ctx context.Context) bool {
	paths, directory, err := p.list()
	if err != nil {
		p.files = nil // A file that comes back is read.
		p.roster.broken(ctx, p.path, err)
		return false
	}
	if directory {
		p.roster.found(ctx, p.path, nil) // It can be read (again).
	}
	for _, place := range p.roster.placeNames() {
		if place != p.path && !slices.Contains(paths, place) {
			p.roster.gone(place)
		}
	}
	now := map[string]file{}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err == nil && info.IsDir() {
			continue
		}
		if err != nil {
			p.roster.broken(ctx, path, plain(err))
			continue
		}
		old, known := p.files[path]
		still := known && same(old.info, info)
		// The first check reads everything, and the next one again, because a file may have been half written.
		if still && !old.read || !p.looked {
			p.read(ctx, path, directory)
		}
		now[path] = file{info: info, read: still}
	}
	p.files, p.looked = now, true
	return true
}

// list returns the files to check.
func (p *kubeconfigs) list() (paths []string, directory bool, err error) {
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
func (p *kubeconfigs) read(ctx context.Context, path string, directory bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		p.roster.broken(ctx, path, plain(err))
		return
	}
	k, err := readKubeconfig(data, path, false)
	name := ""
	if err == nil && directory {
		name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		if !p.o.EveryContext {
			var current kubeContext
			current, err = k.currentContext()
			k.contexts = []kubeContext{current}
		}
	}
	if err != nil {
		p.roster.broken(ctx, path, err)
		return
	}
	var clusters []multicluster.Announcement
	var bad []unusable
	for _, c := range k.contexts {
		cluster := p.clusterOf(name, c.name)
		switch {
		case cluster == "":
		case c.err != nil:
			bad = append(bad, unusable{name: cluster, err: c.err})
		default:
			a := multicluster.Announcement{Name: cluster, Identity: c.identity, Config: c.config}
			if p.o.Labels != nil {
				a.Labels = p.o.Labels(name, c.name)
			}
			clusters = append(clusters, a)
		}
	}
	p.roster.found(ctx, path, clusters, bad...)
}

// clusterOf returns the name of the cluster of a context.
func (p *kubeconfigs) clusterOf(file, context string) string {
	switch {
	case p.o.Name != nil:
		return p.o.Name(file, context)
	case file == "":
		return clusterName(context)
	case p.o.EveryContext:
		return clusterName(file + "/" + context)
	}
	return clusterName(file)
}

// plain returns an error of the file system without the path, which precedes it anyway.
func plain(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return fmt.Errorf("%s: %w", e.Op, e.Err)
	}
	return err
}
