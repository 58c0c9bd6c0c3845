package envtest

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/certs"
	"github.com/flyball-dev/flyball/internal/kubeconfig"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/cel"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// Environment is an API server for a suite, with the definitions that the suite needs. The zero value has no
// definitions. Set its fields before [Environment.Start], and read those that are outputs after it.
//
// Source: sigs.k8s.io/controller-runtime v0.25.2 pkg/envtest/server.go, whose names these are.
type Environment struct {
	// Scheme is kept for the suite. Start sets it to client-go's if it is nil. The server does not need it.
	Scheme *runtime.Scheme

	// Config is for clients that may do everything. Start sets it, except with an existing cluster: then Config names
	// that cluster, and nil means the one that kubectl would use.
	Config *rest.Config

	// KubeConfig is Config as a kubeconfig. Start sets it if it is empty.
	KubeConfig []byte

	// CRDInstallOptions control how definitions are installed.
	CRDInstallOptions CRDInstallOptions

	// WebhookInstallOptions name webhooks to install, and where the suite serves them.
	WebhookInstallOptions WebhookInstallOptions

	// ErrorIfCRDPathMissing makes a missing path an error. Otherwise it is skipped.
	ErrorIfCRDPathMissing bool

	// CRDs are definitions to install, besides those in CRDInstallOptions. After Start they are all installed
	// definitions, as the server stores them.
	CRDs []*apiextensionsv1.CustomResourceDefinition

	// CRDDirectoryPaths are directories and files with definitions, besides the Paths in CRDInstallOptions.
	CRDDirectoryPaths []string

	// Gate does not exist in the other package. It is asked about every request and every watch frame, and may hold
	// them or make them fail. Nil lets everything pass.
	Gate gate.Gate

	// UseExistingCluster installs the definitions into the cluster of Config, and starts no server. Nil means true if
	// the environment variable USE_EXISTING_CLUSTER is "true".
	UseExistingCluster *bool

	// The following fields are about binaries and processes, which do not exist here. They are accepted and ignored, so
	// that a suite has to change only its import. Start logs which of them are set.
	BinaryAssetsDirectory        string
	DownloadBinaryAssets         bool
	DownloadBinaryAssetsVersion  string
	DownloadBinaryAssetsIndexURL string
	ControlPlaneStartTimeout     time.Duration
	ControlPlaneStopTimeout      time.Duration
	AttachControlPlaneOutput     bool

	running *running // nil: not started, or stopped
}

// running is a server on its port.
type running struct {
	server    *localapi.Server
	authority *certs.Authority
	host      string // https://127.0.0.1:port

	// served receives one value from the goroutine that serves, when it has ended. Capacity 1: nobody has to receive.
	served chan error
	stop   context.CancelFunc
}

// Start serves the API and installs the definitions, which can be used when it returns. After an error nothing runs.
func (e *Environment) Start() (_ *rest.Config, err error) {
	if e.running != nil {
		return nil, errors.New("the environment is already started: call Stop first")
	}
	if ignored := e.ignored(); len(ignored) > 0 {
		klog.Background().Info("Ignoring options for binaries and processes, there are none", "fields", ignored)
	}
	if err := e.connect(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.WebhookInstallOptions.Cleanup(), e.end())
		}
	}()
	if len(e.KubeConfig) == 0 {
		if e.KubeConfig, err = kubeConfig(e.Config); err != nil {
			return nil, err
		}
	}
	e.Scheme = cmp.Or(e.Scheme, scheme.Scheme)
	o := &e.CRDInstallOptions
	o.CRDs, o.Paths = append(o.CRDs, e.CRDs...), append(o.Paths, e.CRDDirectoryPaths...)
	o.ErrorIfPathMissing = o.ErrorIfPathMissing || e.ErrorIfCRDPathMissing
	if err := e.WebhookInstallOptions.PrepWithoutInstalling(); err != nil {
		return nil, err
	}
	o.WebhookOptions = e.WebhookInstallOptions
	o.Scheme = cmp.Or(o.Scheme, e.Scheme)
	if e.CRDs, err = InstallCRDs(e.Config, *o); err != nil {
		return nil, err
	}
	o.CRDs = e.CRDs
	if err := e.WebhookInstallOptions.Install(e.Config); err != nil {
		return nil, err
	}
	return e.Config, nil
}

// Stop ends the server and all its connections. If CRDInstallOptions.CleanUpAfterUse is set, it first removes the
// definitions, which matters in an existing cluster. If the environment does not run, Stop does nothing.
func (e *Environment) Stop() error {
	var errs []error
	if e.CRDInstallOptions.CleanUpAfterUse && e.Config != nil {
		errs = append(errs, UninstallCRDs(e.Config, e.CRDInstallOptions))
	}
	return errors.Join(append(errs, e.WebhookInstallOptions.Cleanup(), e.end())...)
}

// AddUser returns a user of the server. The roles bound to the user's name and groups decide what the user may do. The
// user's configuration has the settings of base, which may be nil. AddUser may be called concurrently.
func (e *Environment) AddUser(user User, base *rest.Config) (*AuthenticatedUser, error) {
	if e.running == nil {
		return nil, errors.New("users can only be added to a started environment without an existing cluster")
	}
	return e.running.user(user, base)
}

// connect sets Config: it finds the existing cluster, or starts a server.
func (e *Environment) connect() (err error) {
	if e.useExistingCluster() {
		if e.Config == nil {
			e.Config, err = kubeconfig.Load(clientcmd.NewDefaultClientConfigLoadingRules(), nil, "")
		}
		return err
	}
	if e.running, err = serve(e.Gate); err != nil {
		return fmt.Errorf("start the API server: %w", err)
	}
	// A suite should not wait for its own client's rate limit. The limits are those of controller-runtime's envtest.
	admin, err := e.AddUser(User{Name: "admin", Groups: []string{"system:masters"}},
		&rest.Config{QPS: 1000, Burst: 2000})
	if err != nil {
		return errors.Join(err, e.end())
	}
	e.Config = admin.Config()
	return nil
}

func (e *Environment) useExistingCluster() bool {
	if e.UseExistingCluster != nil {
		return *e.UseExistingCluster
	}
	return strings.EqualFold(os.Getenv("USE_EXISTING_CLUSTER"), "true")
}

// ignored returns the names of the fields that are set and have no effect here.
func (e *Environment) ignored() (fields []string) {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"BinaryAssetsDirectory", e.BinaryAssetsDirectory != ""},
		{"DownloadBinaryAssets", e.DownloadBinaryAssets},
		{"DownloadBinaryAssetsVersion", e.DownloadBinaryAssetsVersion != ""},
		{"DownloadBinaryAssetsIndexURL", e.DownloadBinaryAssetsIndexURL != ""},
		{"ControlPlaneStartTimeout", e.ControlPlaneStartTimeout != 0},
		{"ControlPlaneStopTimeout", e.ControlPlaneStopTimeout != 0},
		{"AttachControlPlaneOutput", e.AttachControlPlaneOutput},
	} {
		if f.set {
			fields = append(fields, f.name)
		}
	}
	return fields
}

// serve starts a server on a free port of the loopback interface.
func serve(g gate.Gate) (_ *running, err error) {
	a, err := certs.NewAuthority(7)
	if err != nil {
		return nil, err
	}
	server, err := localapi.New(localapi.Options{RBAC: true, Gate: paced(g), CEL: cel.New()})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, server.Close())
		}
	}()
	ctx, stop := context.WithCancel(context.Background())
	l, err := localapi.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		stop()
		return nil, err
	}
	certificate, err := a.Server(l.Addr().(*net.TCPAddr).IP)
	if err != nil {
		stop()
		return nil, errors.Join(err, l.Close())
	}
	r := &running{
		server: server, authority: a, host: "https://" + l.Addr().String(), served: make(chan error, 1),
		stop: stop,
	}
	go func() {
		r.served <- server.ServeTLS(ctx, l, &tls.Config{
			Certificates: []tls.Certificate{certificate}, ClientCAs: a.Pool(), MinVersion: tls.VersionTLS12,
		})
	}()
	return r, nil
}

// end stops the server, if there is one.
func (e *Environment) end() error {
	if e.running == nil {
		return nil
	}
	r := e.running
	e.running = nil
	r.stop()
	return errors.Join(<-r.served, r.server.Close())
}

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

// removalDelay is how long the news that a pod is gone is held back from watches.
const removalDelay = 10 * time.Millisecond

// pace is the gate of an environment. It wraps the user's gate and imitates one habit of a kube-apiserver that suites
// count on.
//
// One request both marks a pod without a node for deletion and removes it. For kube-apiserver these are two writes to
// etcd, some milliseconds apart. In between, a controller finds the marked pod in its cache, and some suites have specs
// that pass only then. Here both happen at once, so without the delay the cache would lose the pod before the
// controller looks.
type pace struct{ gate.Gate }

// paced returns the gate of an environment whose user set the gate g, which may be nil.
func paced(g gate.Gate) gate.Gate {
	if g == nil {
		g = gate.Funcs{}
	}
	return pace{g}
}

// Frame implements [gate.Gate].
func (p pace) Frame(ctx context.Context, r *gate.Request, f gate.Frame) gate.Verdict {
	if f.Type == watch.Deleted && r.Group == "" && r.Resource == "pods" {
		timer := time.NewTimer(removalDelay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return p.Gate.Frame(ctx, r, f)
}
