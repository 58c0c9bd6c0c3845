package envtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
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
	certificate, err := r.authority.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: u.Name, Organization: u.Groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Name, err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Name, err)
	}
	config := &rest.Config{}
	if base != nil {
		config = rest.CopyConfig(base)
	}
	config.Host = r.host
	config.CAData = inPEM("CERTIFICATE", r.authority.certificate.Raw)
	config.CertData, config.KeyData = inPEM("CERTIFICATE", certificate.Certificate[0]), inPEM("PRIVATE KEY", key)
	return &AuthenticatedUser{config}, nil
}

// authority signs the certificates of one server and its users.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pool        *x509.CertPool // has only this authority
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key, pool: x509.NewCertPool()}
	template, err := fill(&x509.Certificate{
		Subject: pkix.Name{CommonName: "flyball-envtest"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	})
	if err != nil {
		return nil, err
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	if a.certificate, err = x509.ParseCertificate(raw); err != nil {
		return nil, err
	}
	a.pool.AddCert(a.certificate)
	return a, nil
}

// forServer returns the certificate of a server at an IP address and at localhost.
func (a *authority) forServer(ip net.IP) (tls.Certificate, error) {
	return a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "flyball"}, IPAddresses: []net.IP{ip}, DNSNames: []string{"localhost"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// issue signs a certificate with a new key.
func (a *authority) issue(template *x509.Certificate) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	if template, err = fill(template); err != nil {
		return tls.Certificate{}, err
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, err
}

// fill gives a certificate a serial number, and a lifetime that outlasts any suite.
func fill(template *x509.Certificate) (_ *x509.Certificate, err error) {
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	now := time.Now()
	template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.AddDate(0, 0, 7)
	return template, err
}

func inPEM(kind string, data []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data})
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
