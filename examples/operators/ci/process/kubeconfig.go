package process

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/kubeconfig"
)

// clusters returns the contexts of the kubeconfig as clusters, by name, and the present state of the files that it is
// read from. If there is no context with the hub's name, the hub is the cluster that the program runs in.
func (o *Options) clusters() (configs map[string]*rest.Config, files *watchedFiles, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	files = watch(rules.GetLoadingPrecedence())
	raw, err := rules.Load()
	if err != nil {
		return nil, nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	configs = map[string]*rest.Config{}
	var wrong []error
	for name := range raw.Contexts {
		if err := kubeconfig.Check(raw, name); err != nil {
			wrong = append(wrong, err)
			continue
		}
		config, err := clientcmd.NewNonInteractiveClientConfig(*raw, name, &clientcmd.ConfigOverrides{},
			rules).ClientConfig()
		if err != nil {
			wrong = append(wrong, fmt.Errorf("kubeconfig context %s: %w", name, err))
			continue
		}
		configs[name] = o.tuned(config)
	}
	if configs[o.HubContext] == nil && len(wrong) == 0 {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, nil, fmt.Errorf("the kubeconfig has no context %s, and this is no Pod: %w", o.HubContext, err)
		}
		configs[o.HubContext] = o.tuned(config)
	}
	return configs, files, errors.Join(wrong...)
}

// tuned returns a config with the limits that the flags set.
func (o *Options) tuned(config *rest.Config) *rest.Config {
	config.QPS, config.Burst, config.UserAgent = o.QPS, o.Burst, o.Name
	return config
}

// errKubeconfigChanged is the error that ends the process when the kubeconfig changes.
var errKubeconfigChanged = errors.New("the kubeconfig has changed")

// watchedFiles holds files and a digest of their contents. A missing file counts as empty.
type watchedFiles struct {
	names  []string
	before [sha256.Size]byte
}

func watch(names []string) *watchedFiles {
	f := &watchedFiles{names: names}
	f.before = f.digest()
	return f
}

func (f *watchedFiles) digest() [sha256.Size]byte {
	h := sha256.New()
	for _, name := range f.names {
		text, _ := os.ReadFile(name)
		fmt.Fprintf(h, "%q %q\n", name, text)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// fileWatch ends the process when files change. It compares their contents, because the files of a Secret's volume are
// behind symbolic links that are replaced.
type fileWatch struct {
	files    *watchedFiles
	interval time.Duration
	changed  context.CancelCauseFunc
}

// Name is the name in the manager.
func (w *fileWatch) Name() string { return "kubeconfig" }

// NeedLeaderElection returns false: followers end, too.
func (w *fileWatch) NeedLeaderElection() bool { return false }

// Run checks the files at each interval until ctx is done.
func (w *fileWatch) Run(ctx context.Context) error {
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if w.files.digest() != w.files.before {
				klog.FromContext(ctx).Info("Kubeconfig changed: ending, to be started anew")
				w.changed(errKubeconfigChanged)
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}
