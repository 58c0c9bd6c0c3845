package providers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/flyball-dev/flyball/internal/kubeconfig"
	"github.com/flyball-dev/flyball/multicluster"
)

// KubeconfigOptions configure how files become clusters. The zero value works.
type KubeconfigOptions struct {
	// EveryContext makes every context in the files of a directory a cluster, named FILE/CONTEXT. By default only the
	// current context of each file is a cluster.
	EveryContext bool
	// Name returns the name for a context's cluster, or "" to ignore the context. file is the file's name without
	// directory and extension, or "" if the provider reads a single file. Nil means the names that the package comment
	// and EveryContext describe, with "-" for characters that a cluster's name cannot have.
	Name func(file, context string) string
	// Labels returns the labels of a context's cluster. Nil means none.
	Labels func(file, context string) map[string]string
	// Interval is the time between two checks of the files. Zero means 1 s.
	Interval time.Duration
}

// kubeconfigs finds the clusters in a file, or in the files of a directory.
type kubeconfigs struct {
	*provider
	path string
	o    KubeconfigOptions
	// files has the files that the last check found, by path. It is nil if the check could not list them.
	files map[string]file
	// looked means that an earlier check of this run was able to list the files.
	looked bool
}

// NewKubeconfig returns the provider of the clusters in the kubeconfig file, or in the directory of such files, at
// path. The path need not exist yet.
func NewKubeconfig(path string, o KubeconfigOptions) multicluster.Provider {
	if o.Interval <= 0 {
		o.Interval = time.Second
	}
	p := &provider{name: "kubeconfig"}
	p.find = func(ctx context.Context) error {
		(&kubeconfigs{provider: p, path: path, o: o}).follow(ctx)
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

// same reports whether two checks found the same state of the same file. Between two checks lies one interval. So a
// write after the second check gets a later time stamp, even if the clock of the file system is coarse.
func same(a, b os.FileInfo) bool {
	return a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && os.SameFile(a, b)
}

// look checks the files and reads those that have changed. It returns false if it cannot list the files.
func (p *kubeconfigs) look(ctx context.Context) bool {
	paths, directory, err := p.list()
	if err != nil {
		p.files = nil // so that files are read when they can be listed again
		p.roster.broken(ctx, p.path, err)
		return false
	}
	if directory {
		p.roster.found(ctx, p.path, nil) // the directory itself has no error any more
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
		// The first check reads every file. The second one reads it again, in case it was half written the first time.
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

// plain removes the path from an error of the file system, because the roster names the place anyway.
func plain(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return fmt.Errorf("%s: %w", e.Op, e.Err)
	}
	return err
}

// kubeconfigFile is the content of a kubeconfig: its contexts, sorted by name, and the name of the current one.
type kubeconfigFile struct {
	contexts []kubeContext
	current  string
}

// kubeContext is a context of a kubeconfig.
type kubeContext struct {
	name string
	// config describes how to reach the context's cluster as the context's user; nil if err is set.
	config *rest.Config
	// identity is a hash of the cluster and the user in the kubeconfig.
	identity string
	// err is why the context cannot be used.
	err error
}

func (k *kubeconfigFile) currentContext() (kubeContext, error) {
	i := slices.IndexFunc(k.contexts, func(c kubeContext) bool { return c.name == k.current })
	if i < 0 {
		return kubeContext{}, fmt.Errorf("its current context %q does not exist", k.current)
	}
	return k.contexts[i], nil
}

// readKubeconfig parses a kubeconfig. A context that cannot be used has its own error. path is the kubeconfig's path,
// or "" if it is in no file; file names in the kubeconfig are relative to its directory. If untrusted is true, contexts
// that run a command or read a file cannot be used.
//
// Errors: an invalid kubeconfig; an empty one, such as a file that is still being written.
func readKubeconfig(data []byte, path string, untrusted bool) (*kubeconfigFile, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("it is empty")
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("not a kubeconfig: %w", err)
	}
	if path != "" {
		for _, c := range config.Clusters {
			c.LocationOfOrigin = path
		}
		for _, a := range config.AuthInfos {
			a.LocationOfOrigin = path
		}
		if err := clientcmd.ResolveLocalPaths(config); err != nil {
			return nil, fmt.Errorf("files that it names: %w", err)
		}
	}
	k := &kubeconfigFile{current: config.CurrentContext}
	for _, name := range slices.Sorted(maps.Keys(config.Contexts)) {
		c := kubeContext{name: name}
		if c.config, c.identity, err = readContext(config, name, untrusted); err != nil {
			c.err = fmt.Errorf("context %q: %w", name, err)
		}
		k.contexts = append(k.contexts, c)
	}
	return k, nil
}

// readContext returns the config for the cluster of a context, and its identity.
func readContext(config *api.Config, name string, untrusted bool) (*rest.Config, string, error) {
	context := config.Contexts[name]
	// Without this check, client-go would send anonymous requests.
	if _, known := config.AuthInfos[context.AuthInfo]; context.AuthInfo != "" && !known {
		return nil, "", fmt.Errorf("its user %q does not exist", context.AuthInfo)
	}
	alone := single(config, name)
	if untrusted {
		if err := checkUntrusted(alone); err != nil {
			return nil, "", err
		}
	}
	if err := kubeconfig.Check(alone, name); err != nil {
		return nil, "", err
	}
	restConfig, err := clientcmd.NewNonInteractiveClientConfig(*alone, name, &clientcmd.ConfigOverrides{},
		nil).ClientConfig()
	if err != nil {
		return nil, "", err
	}
	text, err := clientcmd.Write(*alone)
	sum := sha256.Sum256(text)
	return restConfig, hex.EncodeToString(sum[:16]), err
}

// single returns a kubeconfig with one context of config, its cluster and its user. Extensions are left out: tools
// write them, and a change of one would change the identity.
func single(config *api.Config, name string) *api.Config {
	alone := api.NewConfig()
	alone.CurrentContext = name
	context := config.Contexts[name]
	alone.Contexts[name] = &api.Context{Cluster: context.Cluster, AuthInfo: context.AuthInfo}
	if cluster := config.Clusters[context.Cluster]; cluster != nil {
		cluster = cluster.DeepCopy()
		cluster.Extensions = nil
		alone.Clusters[context.Cluster] = cluster
	}
	if user := config.AuthInfos[context.AuthInfo]; user != nil {
		user = user.DeepCopy()
		user.Extensions = nil
		alone.AuthInfos[context.AuthInfo] = user
	}
	return alone
}

// checkUntrusted returns an error if a kubeconfig would make this process run a command, or send one of its files to
// the server that the kubeconfig names.
func checkUntrusted(config *api.Config) error {
	for _, c := range config.Clusters {
		if c.CertificateAuthority != "" {
			return errors.New("certificate-authority names a file: give certificate-authority-data")
		}
	}
	for _, u := range config.AuthInfos {
		switch {
		case u.Exec != nil || u.AuthProvider != nil:
			return errors.New("the user runs a command (exec, auth-provider), which is not allowed")
		case u.TokenFile != "":
			return errors.New("tokenFile names a file: give token")
		case u.ClientCertificate != "" || u.ClientKey != "":
			return errors.New(
				"client-certificate or client-key names a file: give client-certificate-data and client-key-data",
			)
		}
	}
	return nil
}

// clusterName turns any name into one that a fleet accepts. It converts letters to lower case and invalid characters to
// "-". Slashes are valid.
func clusterName(name string) string {
	var parts []string
	for part := range strings.SplitSeq(strings.ToLower(name), "/") {
		part = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' {
				return r
			}
			return '-'
		}, part)
		if part = strings.Trim(part, "-."); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}
