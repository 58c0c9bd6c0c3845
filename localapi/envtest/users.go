package envtest

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/flyball-dev/flyball/internal/certs"
)

// User is the name and groups that a client acts as.
type User struct {
	Name   string
	Groups []string
}

// AuthenticatedUser is a user that the server identifies by a client certificate.
type AuthenticatedUser struct{ config *rest.Config }

// Config returns a configuration for clients that act as the user.
func (u *AuthenticatedUser) Config() *rest.Config { return u.config }

// KubeConfig returns a kubeconfig with which kubectl acts as the user.
func (u *AuthenticatedUser) KubeConfig() ([]byte, error) { return kubeConfig(u.config) }

// user makes a configuration for clients that act as u.
func (r *running) user(u User, base *rest.Config) (*AuthenticatedUser, error) {
	if u.Name == "" {
		return nil, errors.New("a user needs a name")
	}
	certificate, err := r.authority.Client(u.Name, u.Groups...)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Name, err)
	}
	config := &rest.Config{}
	if base != nil {
		config = rest.CopyConfig(base)
	}
	config.Host = r.host
	config.CAData = r.authority.PEM()
	if config.CertData, config.KeyData, err = certs.PEM(certificate); err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Name, err)
	}
	return &AuthenticatedUser{config}, nil
}

// kubeConfig returns c as a kubeconfig. It fails if c has a setting that a kubeconfig cannot express.
func kubeConfig(c *rest.Config) ([]byte, error) {
	if c.Transport != nil || c.WrapTransport != nil || c.Dial != nil {
		return nil, errors.New(
			"write a kubeconfig: the configuration has a transport of its own, which no file can hold",
		)
	}
	cluster := api.NewCluster()
	cluster.Server, cluster.TLSServerName, cluster.InsecureSkipTLSVerify = c.Host, c.ServerName, c.Insecure
	cluster.CertificateAuthority, cluster.CertificateAuthorityData = c.CAFile, c.CAData
	user := api.NewAuthInfo()
	user.ClientCertificate, user.ClientCertificateData = c.CertFile, c.CertData
	user.ClientKey, user.ClientKeyData = c.KeyFile, c.KeyData
	user.Token, user.TokenFile = c.BearerToken, c.BearerTokenFile
	user.Username, user.Password = c.Username, c.Password
	user.Exec, user.AuthProvider = c.ExecProvider, c.AuthProvider
	user.Impersonate, user.ImpersonateUID = c.Impersonate.UserName, c.Impersonate.UID
	user.ImpersonateGroups, user.ImpersonateUserExtra = c.Impersonate.Groups, c.Impersonate.Extra
	context := api.NewContext()
	const name = "envtest"
	context.Cluster, context.AuthInfo = name, name
	all := api.NewConfig()
	all.Clusters[name], all.AuthInfos[name], all.Contexts[name], all.CurrentContext = cluster, user, context, name
	text, err := clientcmd.Write(*all)
	if err != nil {
		return nil, fmt.Errorf("write a kubeconfig: %w", err)
	}
	return text, nil
}
