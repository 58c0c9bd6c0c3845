package flags

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// The apiVersion and kind that a configuration file must have.
const (
	ConfigVersion = "flyball.dev/v1alpha1"
	ConfigKind    = "ManagerConfiguration"
)

// configFields returns the fields of a configuration file and the flags that they set. If a flag has two names, its
// field has both. A field is unknown in programs that do not have its flag.
//
// Source: k8s.io/component-base v0.37.2 config/v1alpha1 (LeaderElectionConfiguration, ClientConnectionConfiguration,
// DebuggingConfiguration) and logs/api/v1, for the names and their places.
func configFields() map[string][]string {
	return map[string][]string{
		"clientConnection.kubeconfig":      {"kubeconfig"},
		"clientConnection.contentType":     {"kube-api-content-type"},
		"clientConnection.qps":             {"kube-api-qps"},
		"clientConnection.burst":           {"kube-api-burst"},
		"leaderElection.leaderElect":       {"leader-elect"},
		"leaderElection.leaseDuration":     {"leader-elect-lease-duration"},
		"leaderElection.renewDeadline":     {"leader-elect-renew-deadline"},
		"leaderElection.retryPeriod":       {"leader-elect-retry-period"},
		"leaderElection.resourceName":      {"leader-elect-resource-name"},
		"leaderElection.resourceNamespace": {"leader-elect-resource-namespace"},
		"bindAddress":                      {"bind-address"},
		"port":                             {"port", "secure-port"},
		"tlsCertFile":                      {"tls-cert-file"},
		"tlsPrivateKeyFile":                {"tls-private-key-file"},
		"insecureServing":                  {"insecure-serving"},
		"enableProfiling":                  {"profiling"},
		"inspectAddress":                   {"inspect-address"},
		"controllerShutdownTimeout":        {"controller-shutdown-timeout"},
		"logging.format":                   {"logging-format"},
		"logging.verbosity":                {"v"},
		"featureGates":                     {"feature-gates"},
	}
}

// AddConfigField makes a field of the configuration file set a flag of the program's own. The path of a field in a
// section has a dot: "imageController.concurrentImageSyncs". Call it before Validate.
//
// A flag named "feature-gates", as the gate of k8s.io/component-base/featuregate adds it, is set by the field
// featureGates without a call of AddConfigField.
func (f *Flags) AddConfigField(path, flag string) {
	f.fields[path] = []string{flag}
}

// readConfig sets the flags for which the configuration file has a value, except those of the command line.
func (f *Flags) readConfig() error {
	if f.Config == "" {
		return nil
	}
	if f.set == nil {
		return errors.New("flags: Config is set without AddFlags, whose flags the file sets")
	}
	text, err := os.ReadFile(f.Config)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	if err := f.applyConfig(text); err != nil {
		return fmt.Errorf("--config %s: %w", f.Config, err)
	}
	return nil
}

func (f *Flags) applyConfig(text []byte) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	_, _ = documents.Read()
	if _, err := documents.Read(); !errors.Is(err, io.EOF) {
		return errors.New("it has more than one document")
	}
	var document map[string]any
	if err := yaml.UnmarshalStrict(text, &document); err != nil { // strict: no duplicate keys
		return err
	}
	if document["apiVersion"] != ConfigVersion || document["kind"] != ConfigKind {
		return fmt.Errorf("it must begin with apiVersion: %s and kind: %s, but has %v and %v",
			ConfigVersion, ConfigKind, document["apiVersion"], document["kind"])
	}
	delete(document, "apiVersion")
	delete(document, "kind")
	return f.applySection("", document)
}

// applySection sets the flags for the fields of a section whose path is prefix.
func (f *Flags) applySection(prefix string, section map[string]any) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(section)) {
		path, value := prefix+name, section[name]
		if flags := f.flagsOf(path); len(flags) > 0 {
			if err := setUnlessChanged(flags, value); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", path, err))
			}
			continue
		}
		inner, isSection := value.(map[string]any)
		if !isSection && value != nil || !f.hasSection(path+".") {
			errs = append(errs, fmt.Errorf("unknown field %s; known: %s", path, strings.Join(f.known(), ", ")))
			continue
		}
		errs = append(errs, f.applySection(path+".", inner))
	}
	return errors.Join(errs...)
}

// flagsOf returns the program's flags that a field sets: several if one flag has several names.
func (f *Flags) flagsOf(path string) (flags []*pflag.Flag) {
	for _, name := range f.fields[path] {
		if flag := f.set.Lookup(name); flag != nil {
			flags = append(flags, flag)
		}
	}
	return flags
}

func (f *Flags) hasSection(prefix string) bool {
	return slices.ContainsFunc(f.known(), func(path string) bool { return strings.HasPrefix(path, prefix) })
}

// known returns the fields that the program has flags for.
func (f *Flags) known() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(f.fields)), func(path string) bool {
		return len(f.flagsOf(path)) == 0
	})
}

// setUnlessChanged sets a flag to a value of the file. The command line wins.
func setUnlessChanged(names []*pflag.Flag, value any) error {
	if slices.ContainsFunc(names, func(flag *pflag.Flag) bool { return flag.Changed }) {
		return nil
	}
	if list, isList := value.([]any); isList {
		if flag, ok := names[0].Value.(pflag.SliceValue); ok { // elements may contain commas
			words, err := flagTexts(list)
			if err != nil {
				return err
			}
			return flag.Replace(words)
		}
	}
	text, err := flagText(value)
	if err != nil {
		return err
	}
	if err := names[0].Value.Set(text); err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	return nil
}

// flagText writes a value as it would be written on a command line: a list with commas, a map as in a=b,c=d.
func flagText(value any) (string, error) {
	switch value := value.(type) {
	case []any:
		words, err := flagTexts(value)
		return strings.Join(words, ","), err
	case map[string]any:
		var words []string
		for _, name := range slices.Sorted(maps.Keys(value)) {
			word, err := flagText(value[name])
			if err != nil {
				return "", err
			}
			words = append(words, name+"="+word)
		}
		return strings.Join(words, ","), nil
	case float64: // every number in the file
		return strconv.FormatFloat(value, 'f', -1, 64), nil
	case nil:
		return "", errors.New("it has no value")
	default:
		return fmt.Sprint(value), nil
	}
}

func flagTexts(list []any) ([]string, error) {
	words := make([]string, len(list))
	for i, each := range list {
		word, err := flagText(each)
		if err != nil {
			return nil, err
		}
		words[i] = word
	}
	return words, nil
}
