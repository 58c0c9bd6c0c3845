package process

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// clusters are the contexts of the kubeconfig as clusters, by name, and the files that it was read from. Where it has no context
// of the hub's name, the hub is the cluster that this runs in.
func (o *Options) clusters() (configs map[string]*rest.Config, files []string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	raw, err := rules.Load()
	if err != nil {
		return nil, nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	configs = map[string]*rest.Config{}
	var wrong []error
	for name := range raw.Contexts {
		config, err := clientcmd.NewNonInteractiveClientConfig(*raw, name, &clientcmd.ConfigOverrides{}, rules).ClientConfig()
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
	return configs, slices.DeleteFunc(rules.GetLoadingPrecedence(), func(file string) bool {
		_, err := os.Stat(file)
		return err != nil
	}), errors.Join(wrong...)
}

// tuned is a config with the limits that the flags say.
func (o *Options) tuned(config *rest.Config) *rest.Config {
	config.QPS, config.Burst, config.UserAgent = o.QPS, o.Burst, o.Name
	return config
}

// errKubeconfigChanged is why the process ends when it does.
var errKubeconfigChanged = errors.New("the kubeconfig has changed")

// fileWatch ends the process when files change. It looks at what is in them: a file of a Secret's volume is behind links that are
// exchanged.
type fileWatch struct {
	files    []string
	interval time.Duration
	changed  context.CancelCauseFunc
}

// Name names it in the manager.
func (w *fileWatch) Name() string { return "kubeconfig" }

// NeedLeaderElection says that followers end, too.
func (w *fileWatch) NeedLeaderElection() bool { return false }

// Run looks at the files until ctx is done.
func (w *fileWatch) Run(ctx context.Context) error {
	before := w.digest()
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if w.digest() != before {
				klog.FromContext(ctx).Info("Kubeconfig changed: ending, to be started anew")
				w.changed(errKubeconfigChanged)
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// digest is that of the files' contents; a file that is missing counts as empty.
func (w *fileWatch) digest() (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, file := range w.files {
		text, _ := os.ReadFile(file)
		fmt.Fprintf(h, "%q %q\n", file, text)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
