package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/manager"
)

// processFlags are the flags about the process itself: where it serves what, and how it logs.
type processFlags struct {
	// bindAddress and port are where health, metrics and, if asked for, profiles are served, in one place.
	bindAddress       string
	port              int
	certFile, keyFile string
	insecure          bool
	profiling         bool
	logFormat         string
}

const (
	logText = "text"
	logJSON = "json"
)

func (f *processFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.bindAddress, "bind-address", "127.0.0.1", "the address on which /livez, /readyz, /healthz and /metrics are served. On loopback: as plain HTTP; elsewhere by TLS, and all but health only to those whose token the API server knows and allows to get the path")
	fs.IntVar(&f.port, "port", 10257, "the port for them; 0 switches them off")
	fs.StringVar(&f.certFile, "tls-cert-file", "", "the certificate to serve with, read again when it changes; without one, and not on loopback, one is made that nobody can verify")
	fs.StringVar(&f.keyFile, "tls-private-key-file", "", "the certificate's key")
	fs.BoolVar(&f.insecure, "insecure-serving", false, "serve everything to whoever reaches the address, and without --tls-cert-file as plain HTTP")
	fs.BoolVar(&f.profiling, "profiling", false, "serve /debug/pprof/ and /configz, too")
	fs.StringVar(&f.logFormat, "logging-format", logText, "how to log: text or json")
}

func (f *processFlags) validate() error {
	if f.port < 0 || f.port > 65535 {
		return fmt.Errorf("--port %d: it must be between 0 and 65535", f.port)
	}
	if (f.certFile == "") != (f.keyFile == "") {
		return errors.New("--tls-cert-file and --tls-private-key-file need each other")
	}
	if !slices.Contains([]string{logText, logJSON}, f.logFormat) {
		return fmt.Errorf("--logging-format %q: it must be %s or %s", f.logFormat, logText, logJSON)
	}
	return nil
}

// configure puts the flags into the options.
func (f *processFlags) configure(o *manager.Options, fs *pflag.FlagSet) {
	if f.port == 0 {
		return
	}
	o.HealthAddr = net.JoinHostPort(f.bindAddress, strconv.Itoa(f.port))
	o.MetricsAddr = o.HealthAddr
	if f.profiling {
		o.DebugAddr = o.HealthAddr
		o.Configz = map[string]any{"flyball.dev/manager": shown(fs)}
	}
	ip := net.ParseIP(f.bindAddress)
	loopback := f.bindAddress == "localhost" || ip != nil && ip.IsLoopback()
	o.Serving = manager.Serving{CertFile: f.certFile, KeyFile: f.keyFile, Insecure: f.insecure}
	o.Serving.SelfSigned = f.certFile == "" && !loopback && !f.insecure
	o.Serving.Review = (o.Serving.SelfSigned || f.certFile != "") && !f.insecure
}

// shown are all flags with their values. None of them is a secret.
func shown(fs *pflag.FlagSet) map[string]string {
	values := map[string]string{}
	fs.VisitAll(func(f *pflag.Flag) { values[f.Name] = f.Value.String() })
	return values
}

// startLogging sets how this process logs, libraries included, and returns what undoes it.
func (f *processFlags) startLogging(fs *pflag.FlagSet, stderr io.Writer) (stop func()) {
	if f.logFormat != logJSON {
		return func() {}
	}
	verbosity, err := strconv.Atoi(strings.TrimSpace(fs.Lookup("v").Value.String()))
	if err != nil {
		verbosity = 0
	}
	handler := slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: slog.Level(-verbosity)})
	klog.SetSlogLogger(slog.New(handler))
	return klog.ClearLogger
}
