package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/cmd/flyball/nodes"
	"github.com/flyball-dev/flyball/cmd/flyball/store"
	"github.com/flyball-dev/flyball/controllers"
	"github.com/flyball-dev/flyball/internal/loopback"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/cel"
	"github.com/flyball-dev/flyball/localapi/cluster"
	"github.com/flyball-dev/flyball/localapi/kubelet"
	"github.com/flyball-dev/flyball/localapi/storage"
	"github.com/flyball-dev/flyball/manager"
)

// Options configures [Run].
type Options struct {
	// Addr is the loopback address on which the API listens; port 0 means a free port.
	Addr string
	// AllowedHosts are further host names that clients may use; see [localapi.Options].
	AllowedHosts []string
	// Kubeconfig is the file to which a kubeconfig is written, with the token that every client needs. Empty means one
	// in the directory of the store or, without that, a temporary file, which is removed at the end.
	Kubeconfig string
	// Controllers are the controllers to run, in the form of kube-controller-manager's flag; empty means none.
	Controllers []string
	// Kubelet is whether a fake kubelet reports that pods run; without it they stay Pending.
	Kubelet bool
	// Scheduler is whether the fake kubelet also places pods on its nodes.
	Scheduler bool
	// Namespaces is whether new namespaces get what they need, and deleted ones are emptied.
	Namespaces bool
	// RBAC authorizes users by their roles. The user of the kubeconfig may do everything.
	RBAC bool
	// WebhookServices are addresses of webhooks; see [localapi.Options].
	WebhookServices map[string]string
	// Store is where the objects are stored.
	Store store.Options
	// Page is the loopback address that shows the controllers from inside. Empty means none.
	Page string
	// Step holds the controllers and the clients of the API up, until the reader of the page lets them through. It
	// needs Page.
	Step bool
	// Out receives a message with the API's address and that of the page.
	Out io.Writer
}

// podDelay is about how long the fake kubelet takes to start a pod. podStop is how long it takes at least to stop one,
// so that a user who polls every second sees it terminate.
const (
	podDelay = 300 * time.Millisecond
	podStop  = 1500 * time.Millisecond
)

// historyAge is how old the history gets, as in a kube-apiserver.
const historyAge = 5 * time.Minute

// Run serves until ctx is done, and returns when everything has stopped. Errors: the store cannot be opened; the
// address cannot be listened on; the kubeconfig cannot be written; a controller does not exist; a part failed.
func Run(ctx context.Context, o Options) (err error) {
	objects, err := o.Store.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, objects.Close()) }()
	defer tellOfFailure(ctx, objects)()
	shown := newPage(o)
	known, err := credentialsOf(o.Store)
	if err != nil {
		return err
	}
	api := localapi.Options{
		Storage: objects, Tenant: o.Store.Tenant, Tokens: Tokens(known.Token), RBAC: o.RBAC,
		AllowedHosts: o.AllowedHosts, WebhookServices: o.WebhookServices, HistoryAge: historyAge,
		CEL: cel.New(), ClusterObjects: true, ServiceAccounts: true,
	}
	if o.Step {
		api.Gate = shown.tap.Gate()
	}
	server, err := localapi.New(api)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	socket, err := Open(ctx, o.Addr, known, o.AllowedHosts)
	if err != nil {
		return err
	}
	managers, err := build(server, o, known.authority.PEM(), shown)
	if err != nil {
		return errors.Join(err, socket.Close())
	}
	kubeconfig, remove, err := prepareKubeconfig(o, socket)
	if err != nil {
		return errors.Join(err, socket.Close())
	}
	defer remove()
	fmt.Fprintf(o.Out, "The API listens on %s. Ctrl-C stops it.\n%s\n\n  export KUBECONFIG=%s\n\n", socket.Addr(),
		o.fate(), kubeconfig)
	return run(ctx, managers, shown, func(ctx context.Context) error { return socket.Serve(ctx, server) })
}

// tellOfFailure logs when the store no longer accepts writes. The process goes on, because reads still work. The caller
// must call the returned function to release its resources.
func tellOfFailure(ctx context.Context, objects storage.Storage) func() {
	until, release := store.UntilFailed(context.WithoutCancel(ctx), objects)
	var wg sync.WaitGroup
	wg.Go(func() {
		<-until.Done()
		if err := store.Failure(objects); err != nil {
			klog.FromContext(ctx).Error(err, "The store failed, the API is read-only from now on")
		}
	})
	return func() {
		release()
		wg.Wait()
	}
}

// fate returns a message about what happens to pods.
func (o Options) fate() string {
	if o.Kubelet {
		return "Pods are not run: a fake kubelet only reports that they are, on nodes that do not exist " +
			"(--kubelet=off: they stay Pending)."
	}
	return "Pods are not run: they stay Pending (--kubelet=pretend: a fake kubelet reports that they run)."
}

// build returns the managers that run beside the API: one for the nodes and one for the controllers, because on a real
// cluster these are two processes. The second one shows the page. rootCA verifies the API's certificate.
func build(server *localapi.Server, o Options, rootCA []byte, shown *page) ([]*manager.Manager, error) {
	config := nodes.Quiet(server.RESTConfig())
	config.UserAgent = nodesAgent()
	m, err := manager.New(config, manager.Options{})
	if err != nil {
		return nil, err
	}
	if o.Kubelet {
		err = nodes.AddKubelet(m, kubelet.Options{
			Delay: podDelay, Spread: podDelay / 2, Stop: podStop, NoScheduler: !o.Scheduler,
		})
	}
	if o.Namespaces {
		err = errors.Join(err, cluster.AddNamespaces(m, rootCA))
	}
	if err != nil {
		return nil, err
	}
	if len(o.Controllers) == 0 && shown == nil {
		return []*manager.Manager{m}, nil
	}
	c, err := newControllers(rest.AddUserAgent(nodes.Quiet(server.RESTConfig()), "controllers"), o, shown)
	return []*manager.Manager{m, c}, err
}

// newControllers returns the manager of the controllers, if there are any, and of the page, if there is one.
func newControllers(config *rest.Config, o Options, shown *page) (*manager.Manager, error) {
	options := manager.Options{DebugAddr: o.Page}
	if shown != nil {
		options.Inspect = shown.inspector
	}
	m, err := manager.New(config, options)
	if err != nil {
		return nil, err
	}
	if len(o.Controllers) > 0 {
		if err := controllers.Add(m, controllers.Options{Selection: o.Controllers}); err != nil {
			return nil, err
		}
	}
	if shown != nil {
		return m, shown.add(m)
	}
	return m, nil
}

// run runs the managers until serve has returned, and waits for them. The API in this process outlives them.
func run(ctx context.Context, managers []*manager.Manager, shown *page, serve func(context.Context) error) error {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	errs := make([]error, len(managers))
	var parts sync.WaitGroup
	for i, m := range managers {
		parts.Go(func() {
			defer stop()
			errs[i] = loopback.InUse(m.Run(running))
		})
		if shown != nil && i == 0 {
			nodes.Settle(serving, m) // then the controllers begin with what it makes at its start
		}
	}
	if shown != nil {
		shown.begin(serving, running)
	}
	err := serve(serving)
	end()
	parts.Wait()
	return errors.Join(append(errs, err)...)
}

// Tokens returns the users of a server: the administrator, who has the token.
func Tokens(token string) map[string]auth.User { return map[string]auth.User{token: auth.Admin()} }

// CheckHosts validates host names of the server.
func CheckHosts(names []string) error {
	for _, name := range names {
		if wrong := validation.NameIsDNSSubdomain(name, false); len(wrong) > 0 {
			return fmt.Errorf("%q: it must be a name without scheme and port: %s", name, wrong[0])
		}
	}
	return nil
}

// CheckWebhookServices validates the addresses of webhooks by Service.
func CheckWebhookServices(services map[string]string) error {
	for service, address := range services {
		namespace, name, ok := strings.Cut(service, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return fmt.Errorf("%q: it must be NAMESPACE/NAME of a Service", service)
		}
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("%q: it must be HOST:PORT: %w", address, err)
		}
	}
	return nil
}

// Socket is a loopback port that serves an API to every client that has the kubeconfig. It uses TLS, because clients
// send the token of a kubeconfig only over TLS.
type Socket struct {
	listener    net.Listener
	known       *Credentials
	certificate tls.Certificate
}

// Open opens the port: the one that the clients know, if addr has port 0 and it is free. Clients may use its address,
// localhost and names. The caller must call Serve or Close.
func Open(ctx context.Context, addr string, known *Credentials, names []string) (*Socket, error) {
	l, err := listen(ctx, addr, known.port)
	if err != nil {
		return nil, err
	}
	s := &Socket{listener: l, known: known}
	s.certificate, err = known.authority.Server(l.Addr().(*net.TCPAddr).IP, names...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a certificate: %w", err), l.Close())
	}
	return s, nil
}

// listen listens on addr, with the given port in place of port 0 if that is possible.
func listen(ctx context.Context, addr, port string) (net.Listener, error) {
	if host, any, err := net.SplitHostPort(addr); err == nil && any == "0" && port != "" {
		if l, err := localapi.Listen(ctx, net.JoinHostPort(host, port)); err == nil {
			return l, nil
		}
	}
	l, err := localapi.Listen(ctx, addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w; --addr chooses another one", err)
	}
	return l, err
}

// Addr returns the address on which the socket listens.
func (s *Socket) Addr() string { return s.listener.Addr().String() }

// Close closes the port.
func (s *Socket) Close() error { return s.listener.Close() }

// Serve serves the API until ctx ends.
func (s *Socket) Serve(ctx context.Context, server *localapi.Server) error {
	return server.ServeTLS(ctx, s.listener,
		&tls.Config{Certificates: []tls.Certificate{s.certificate}, MinVersion: tls.VersionTLS12})
}
