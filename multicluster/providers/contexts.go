package providers

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

// kubeconfigFile is the content of a kubeconfig: its contexts, sorted by name, and the name of the current one.
type kubeconfigFile struct {
	contexts []kubeContext
	current  string
}

// kubeContext is a context of a kubeconfig.
type kubeContext struct {
	name string
	// config says how to reach its cluster as its user. It is nil when err says why the context cannot be used.
	config *rest.Config
	// identity changes with everything that the kubeconfig says about the cluster and the user.
	identity string
	err      error
}

// currentContext returns the current context.
func (k *kubeconfigFile) currentContext() (kubeContext, error) {
	i := slices.IndexFunc(k.contexts, func(c kubeContext) bool { return c.name == k.current })
	if i < 0 {
		return kubeContext{}, fmt.Errorf("its current context %q does not exist", k.current)
	}
	return k.contexts[i], nil
}

// readKubeconfig reads a kubeconfig, every context by itself. path is the file that it was read from, or "". File names
// in the kubeconfig are relative to it. An untrusted kubeconfig is rejected if it runs a command, or reads a file, of
// this process.
//
// Errors: an invalid kubeconfig, or an empty one, such as a file that is still being written.
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

// readContext returns how to reach the cluster of a context, and its identity.
func readContext(config *api.Config, name string, untrusted bool) (*rest.Config, string, error) {
	context := config.Contexts[name]
	// Without this check client-go would send anonymous requests.
	if _, known := config.AuthInfos[context.AuthInfo]; context.AuthInfo != "" && !known {
		return nil, "", fmt.Errorf("its user %q does not exist", context.AuthInfo)
	}
	alone := single(config, name)
	if untrusted {
		if err := harmless(alone); err != nil {
			return nil, "", err
		}
	}
	if err := kubeconfig.Check(alone, name); err != nil {
		return nil, "", err
	}
	reached, err := clientcmd.NewNonInteractiveClientConfig(*alone, name, &clientcmd.ConfigOverrides{},
		nil).ClientConfig()
	if err != nil {
		return nil, "", err
	}
	text, err := clientcmd.Write(*alone)
	sum := sha256.Sum256(text)
	return reached, hex.EncodeToString(sum[:16]), err
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

// clusterName turns any name into one that a fleet accepts: lower case, with "-" for invalid characters. Slashes stay.
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
