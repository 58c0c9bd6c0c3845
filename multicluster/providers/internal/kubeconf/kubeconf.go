// Package kubeconf reads kubeconfigs for providers: every context by itself, with an identity that distinguishes its
// cluster from others.
package kubeconf

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/flyball-dev/flyball/internal/kubeconfig"
)

// Context is a context of a kubeconfig.
type Context struct {
	Name string
	// Config says how to reach its cluster as its user. It is nil when Err says why the context cannot be used.
	Config *rest.Config
	// Identity changes with everything that the kubeconfig says about the cluster and the user.
	Identity string
	Err      error
}

// Source is where a kubeconfig comes from.
type Source struct {
	// Path is the file that it was read from; "" if it was none. File names in the kubeconfig are relative to it.
	Path string
	// Untrusted refuses kubeconfigs that run a command, or read a file, of this process.
	Untrusted bool
}

// Read returns the contexts of a kubeconfig, by name, and the name of the current one.
//
// Errors: an invalid kubeconfig, or an empty one, such as a file that is still being written.
func Read(data []byte, from Source) (contexts []Context, current string, err error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, "", errors.New("it is empty")
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, "", fmt.Errorf("not a kubeconfig: %w", err)
	}
	if from.Path != "" {
		for _, c := range config.Clusters {
			c.LocationOfOrigin = from.Path
		}
		for _, a := range config.AuthInfos {
			a.LocationOfOrigin = from.Path
		}
		if err := clientcmd.ResolveLocalPaths(config); err != nil {
			return nil, "", fmt.Errorf("files that it names: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(config.Contexts)) {
		contexts = append(contexts, read(config, name, from))
	}
	return contexts, config.CurrentContext, nil
}

func read(config *api.Config, name string, from Source) Context {
	c := Context{Name: name}
	fail := func(err error) Context {
		c.Config, c.Err = nil, fmt.Errorf("context %q: %w", name, err)
		return c
	}
	context := config.Contexts[name]
	// Without this check client-go would send anonymous requests.
	if _, known := config.AuthInfos[context.AuthInfo]; context.AuthInfo != "" && !known {
		return fail(fmt.Errorf("its user %q does not exist", context.AuthInfo))
	}
	alone := single(config, name)
	if from.Untrusted {
		if err := harmless(alone); err != nil {
			return fail(err)
		}
	}
	if err := kubeconfig.Check(alone, name); err != nil {
		return fail(err)
	}
	var err error
	if c.Config, err = clientcmd.NewNonInteractiveClientConfig(*alone, name, &clientcmd.ConfigOverrides{},
		nil).ClientConfig(); err != nil {
		return fail(err)
	}
	text, err := clientcmd.Write(*alone)
	if err != nil {
		return fail(err)
	}
	sum := sha256.Sum256(text)
	c.Identity = hex.EncodeToString(sum[:16])
	return c
}

// single returns the part of a kubeconfig that is about a context's cluster and user.
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

// harmless refuses a kubeconfig that would make this process run a command, or send one of its files to a server that
// the kubeconfig names.
func harmless(config *api.Config) error {
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

// ClusterName turns any name into one that a fleet accepts: lower case, with "-" for invalid characters. Slashes stay.
func ClusterName(name string) string {
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
