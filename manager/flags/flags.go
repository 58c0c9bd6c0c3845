package flags

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/kubeconfig"
	"github.com/flyball-dev/flyball/internal/loopback"
	"github.com/flyball-dev/flyball/manager"
)

// Flags holds the values of a manager's flags. Values set between [New] and AddFlags become the defaults.
type Flags struct {
	// Name is the name of the program, used for its lease, its user agent and its entry at /configz.
	Name string

	// Config is the path of a configuration file. Empty means none.
	Config string
	// Kubeconfig, Context and Master select the cluster.
	Kubeconfig, Context, Master string
	// QPS and Burst limit the requests to the API server; a negative QPS means no limit.
	QPS   float32
	Burst int
	// ContentType is the content type of requests to the API server.
	ContentType string

	// BindAddress and Port are the address that serves health, metrics and, with Profiling, profiles. Port 0 means
	// none.
	BindAddress       string
	Port              int
	CertFile, KeyFile string
	Insecure          bool
	Profiling         bool
	// InspectAddress is where Inspect is shown. Empty means nowhere, and then nothing is recorded.
	InspectAddress string
	// Inspect is what --inspect-address shows, for example inspect.New(inspect.Options{}). AddFlags adds that flag if
	// it is not nil.
	Inspect manager.Inspector
	// LogFormat is text or json.
	LogFormat string

	// GracefulTimeout and LeaderElection are those of manager.Options.
	GracefulTimeout time.Duration
	LeaderElection  manager.LeaderElection

	set *pflag.FlagSet // the flag set given to AddFlags
	// fields maps the fields of a configuration file to the flags that they set.
	fields map[string][]string
}

// The log formats.
const (
	LogText = "text"
	LogJSON = "json"
)

// New returns flags with kube-controller-manager's defaults, except that by default only port 10257 on loopback is
// opened and no profiles are served there. The lease is kube-system/name.
func New(name string) *Flags {
	f := &Flags{
		Name: name, QPS: 20, Burst: 30, ContentType: runtime.ContentTypeProtobuf,
		BindAddress: "127.0.0.1", Port: 10257, LogFormat: LogText, GracefulTimeout: 10 * time.Second,
		fields: configFields(),
	}
	f.LeaderElection = manager.LeaderElection{Enabled: true, Namespace: "kube-system", Name: name}
	f.LeaderElection.LeaseDuration, f.LeaderElection.RenewDeadline, f.LeaderElection.RetryPeriod = 15*time.Second,
		10*time.Second, 2*time.Second
	return f
}

// AddFlags adds the flags, with klog's -v and -vmodule.
//
// Source: kube-controller-manager v1.37.2, for the names of flags that it has. docs/divergence.md lists the defaults
// that differ.
func (f *Flags) AddFlags(fs *pflag.FlagSet) {
	f.set = fs
	fs.StringVar(&f.Config, "config", f.Config,
		"a file with a ManagerConfiguration, whose fields set these flags; flags on the command line win")
	fs.StringVar(&f.Kubeconfig, "kubeconfig", f.Kubeconfig,
		"the kubeconfig file; empty means $KUBECONFIG, then ~/.kube/config, then the service account of the Pod")
	fs.StringVar(&f.Context, "context", f.Context, "the context of the kubeconfig; empty means its current context")
	fs.StringVar(&f.Master, "master", f.Master, "the address of the API server; it overrides the one in the kubeconfig")
	fs.Float32Var(&f.QPS, "kube-api-qps", f.QPS,
		"the maximum rate of requests to the API server, per second; 0 means the default, negative means no limit")
	fs.IntVar(&f.Burst, "kube-api-burst", f.Burst, "the maximum burst of requests to the API server")
	fs.StringVar(&f.ContentType, "kube-api-content-type", f.ContentType,
		"the content type of requests to the API server")

	fs.StringVar(&f.BindAddress, "bind-address", f.BindAddress,
		"the address on which to serve /livez, /readyz, /healthz and /metrics. A loopback address serves plain HTTP. "+
			"Other addresses serve TLS, and everything but health only to clients whose bearer token the API server "+
			"accepts and allows to get the path")
	fs.IntVar(&f.Port, "port", f.Port, "the port of --bind-address; 0 means none")
	fs.IntVar(&f.Port, "secure-port", f.Port, "kube-controller-manager's name for --port")
	fs.StringVar(&f.CertFile, "tls-cert-file", f.CertFile,
		"the certificate for serving, reloaded when it changes; if it is empty, other addresses than loopback use a "+
			"self-signed certificate, which clients cannot verify")
	fs.StringVar(&f.KeyFile, "tls-private-key-file", f.KeyFile, "the private key of the certificate")
	fs.BoolVar(&f.Insecure, "insecure-serving", f.Insecure,
		"serve everything to everyone who can reach the address, and without --tls-cert-file as plain HTTP")
	fs.BoolVar(&f.Profiling, "profiling", f.Profiling, "also serve /debug/pprof/ and /configz")
	if f.Inspect != nil {
		fs.StringVar(&f.InspectAddress, "inspect-address", f.InspectAddress,
			"record what happens to objects, and show it at http://ADDRESS/inspect/; /debug/pprof/ and /configz are "+
				"served there too. TLS and tokens are those of --bind-address; without --tls-cert-file the address "+
				"must be loopback, unless --bind-address is not. Empty means off")
	}
	fs.StringVar(&f.LogFormat, "logging-format", f.LogFormat, "the log format: text or json")
	fs.DurationVar(&f.GracefulTimeout, "controller-shutdown-timeout", f.GracefulTimeout,
		"how long work in flight may go on after the stop")

	l := &f.LeaderElection
	fs.BoolVar(&l.Enabled, "leader-elect", l.Enabled, "work only while holding the lease")
	fs.DurationVar(&l.LeaseDuration, "leader-elect-lease-duration", l.LeaseDuration,
		"how long other candidates wait for a leader that does not renew the lease")
	fs.DurationVar(&l.RenewDeadline, "leader-elect-renew-deadline", l.RenewDeadline,
		"how long the leader tries to renew the lease before it stops working")
	fs.DurationVar(&l.RetryPeriod, "leader-elect-retry-period", l.RetryPeriod,
		"the time between two attempts to acquire or renew the lease")
	fs.StringVar(&l.Name, "leader-elect-resource-name", l.Name,
		"the name of the lease, which all replicas of one program share and no other program uses")
	fs.StringVar(&l.Namespace, "leader-elect-resource-namespace", l.Namespace, "the namespace of the lease")

	logging := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(logging)
	fs.AddGoFlag(logging.Lookup("v"))
	fs.AddGoFlag(logging.Lookup("vmodule"))
}

// Validate reads the configuration file, if there is one, and checks the values that nothing else checks. Call it once
// the command line has been parsed and before the values are used.
//
// Errors: a line that names the flag, or one for each mistake in the file, with the path of the field.
func (f *Flags) Validate() error {
	if err := f.readConfig(); err != nil {
		return err
	}
	switch {
	case f.Port < 0 || f.Port > 65535:
		name := "port"
		if f.set != nil && f.set.Changed("secure-port") {
			name = "secure-port"
		}
		return fmt.Errorf("--%s %d: it must be between 0 and 65535", name, f.Port)
	case f.BindAddress != "" && f.BindAddress != "localhost" && net.ParseIP(f.BindAddress) == nil:
		return fmt.Errorf("--bind-address %q: it must be an IP address or localhost; empty: all addresses",
			f.BindAddress)
	case (f.CertFile == "") != (f.KeyFile == ""):
		return errors.New("--tls-cert-file and --tls-private-key-file need each other")
	case !slices.Contains([]string{LogText, LogJSON}, f.LogFormat):
		return fmt.Errorf("--logging-format %q: it must be %s or %s", f.LogFormat, LogText, LogJSON)
	case f.Burst < 0 || f.Burst == 0 && f.QPS > 0:
		return fmt.Errorf("--kube-api-burst %d: it must be at least 1", f.Burst)
	case f.LeaderElection.Enabled && f.LeaderElection.Name == "":
		return errors.New(
			"--leader-elect-resource-name is empty: give the lease a name that no other program's lease has",
		)
	case f.GracefulTimeout < 0:
		return fmt.Errorf("--controller-shutdown-timeout %s: it must not be negative", f.GracefulTimeout)
	}
	if err := f.validateInspect(); err != nil {
		return err
	}
	if known := []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON}; !slices.Contains(known, f.ContentType) {
		return fmt.Errorf("--kube-api-content-type %q: it must be one of %s", f.ContentType, strings.Join(known, ", "))
	}
	return nil
}

// validateInspect checks --inspect-address.
func (f *Flags) validateInspect() error {
	if f.InspectAddress == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(f.InspectAddress)
	if err != nil {
		return fmt.Errorf("--inspect-address: %w", err)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("--inspect-address %q: the port must be between 0 and 65535", f.InspectAddress)
	}
	if f.Profiling && f.Port != 0 && f.InspectAddress != f.address() {
		return fmt.Errorf("--profiling serves profiles at %s, --inspect-address at %s: leave --profiling out, or give "+
			"both the same address", f.address(), f.InspectAddress)
	}
	if s := f.serving(); !loopback.Host(host) && !s.Review && !s.Insecure {
		return fmt.Errorf("--inspect-address %s is not loopback: give --tls-cert-file and --tls-private-key-file, and "+
			"readers need a token; or --insecure-serving, to show objects to everyone who can reach the address",
			f.InspectAddress)
	}
	return nil
}

// address is where health, metrics and profiles are served.
func (f *Flags) address() string { return net.JoinHostPort(f.BindAddress, strconv.Itoa(f.Port)) }

// serving returns how all addresses are served.
func (f *Flags) serving() manager.Serving {
	s := manager.Serving{CertFile: f.CertFile, KeyFile: f.KeyFile, Insecure: f.Insecure}
	s.SelfSigned = f.CertFile == "" && !loopback.Host(f.BindAddress) && !f.Insecure
	s.Review = (s.SelfSigned || f.CertFile != "") && !f.Insecure
	return s
}

// ManagerOptions returns the manager options that the flags describe. If metrics is nil, /metrics is not served.
func (f *Flags) ManagerOptions(metrics manager.Metrics) manager.Options {
	o := manager.Options{GracefulTimeout: f.GracefulTimeout, LeaderElection: f.LeaderElection, Metrics: metrics}
	if f.GracefulTimeout == 0 {
		o.GracefulTimeout = -1 // an explicit 0 means no time at all
	}
	if f.Port != 0 {
		o.HealthAddr = f.address()
		if metrics != nil {
			o.MetricsAddr = o.HealthAddr
		}
		if f.Profiling {
			o.DebugAddr = o.HealthAddr
		}
	}
	if f.InspectAddress != "" {
		o.DebugAddr, o.Inspect = f.InspectAddress, f.Inspect
	}
	if o.HealthAddr+o.DebugAddr != "" {
		o.Serving = f.serving()
	}
	if o.DebugAddr != "" {
		o.Configz = map[string]any{f.Name: f.shown()}
	}
	return o
}

// shown returns all flags of the program with their values. None of them may be secret, as command lines are public.
func (f *Flags) shown() map[string]string {
	values := map[string]string{}
	if f.set != nil {
		f.set.VisitAll(func(f *pflag.Flag) { values[f.Name] = f.Value.String() })
	}
	return values
}

// RESTConfig reads the kubeconfig, so that a mistake in it is reported before anything starts.
func (f *Flags) RESTConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.Context}
	overrides.ClusterInfo.Server = f.Master
	config, err := kubeconfig.Load(rules, overrides, "--kubeconfig")
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst, config.ContentType = f.QPS, f.Burst, f.ContentType
	return rest.AddUserAgent(config, f.Name), nil
}

// StartLogging configures logging for this process, libraries included, and returns a function that undoes it. It is
// the only function here with an effect on the whole process, because klog is global.
func (f *Flags) StartLogging(stderr io.Writer) (stop func()) {
	if f.LogFormat != LogJSON {
		return func() {}
	}
	verbosity := 0
	if f.set != nil {
		if v := f.set.Lookup("v"); v != nil {
			verbosity, _ = strconv.Atoi(v.Value.String()) // klog has validated it
		}
	}
	klog.SetSlogLogger(slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: slog.Level(-verbosity)})))
	return klog.ClearLogger
}
