// Package kubeconfig reads kubeconfigs as client-go does, and reports mistakes by file and field. The message of
// client-go about a bad certificate, "unable to parse bytes as PEM block", names neither.
package kubeconfig

import (
	"cmp"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Load returns the config of one context: that of overrides, or else the current one. Without any kubeconfig it returns
// the config of the Pod it runs in. by is what messages call an explicit file, for example "--kubeconfig"; it is used
// only if rules has an explicit path.
//
// Errors: one line that names the file and the field.
func Load(rules *clientcmd.ClientConfigLoadingRules, overrides *clientcmd.ConfigOverrides,
	by string,
) (*rest.Config, error) {
	if rules.ExplicitPath != "" {
		if _, err := os.Stat(rules.ExplicitPath); err != nil {
			return nil, fmt.Errorf("%s: %w", by, err)
		}
	}
	if overrides == nil {
		overrides = &clientcmd.ConfigOverrides{}
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err) // err names the file
	}
	name := cmp.Or(overrides.CurrentContext, raw.CurrentContext)
	if _, known := raw.Contexts[name]; !known &&
		(name != "" || len(raw.Contexts) > 0 && overrides.ClusterInfo.Server == "") {
		return nil, noContext(&raw, name, origin(rules, by))
	}
	if err := Check(&raw, name); err != nil {
		return nil, err
	}
	config, err := loader.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, noCluster(rules, by)
	case err != nil:
		return nil, fmt.Errorf("kubeconfig %s: %w", origin(rules, by), err)
	}
	return config, nil
}

// files returns the files of rules that exist.
func files(rules *clientcmd.ClientConfigLoadingRules) []string {
	return slices.DeleteFunc(slices.Clone(rules.GetLoadingPrecedence()), func(path string) bool {
		_, err := os.Stat(path)
		return err != nil
	})
}

// origin returns the names of the files that were read.
func origin(rules *clientcmd.ClientConfigLoadingRules, by string) string {
	read := files(rules)
	if len(read) == 0 {
		return by
	}
	return strings.Join(read, ", ")
}

// noContext returns the error for a context that does not exist, or that was not chosen.
func noContext(raw *api.Config, name, origin string) error {
	known := strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", ")
	switch {
	case known == "":
		return fmt.Errorf("kubeconfig %s: there is no context %q: it has none", origin, name)
	case name == "":
		return fmt.Errorf("kubeconfig %s: it has no current-context: choose one of %s", origin, known)
	}
	return fmt.Errorf("kubeconfig %s: there is no context %q: it has %s", origin, name, known)
}

// noCluster returns the error for a kubeconfig without a cluster.
func noCluster(rules *clientcmd.ClientConfigLoadingRules, by string) error {
	if rules.ExplicitPath != "" {
		return fmt.Errorf("%s: %s names no cluster", by, rules.ExplicitPath)
	}
	named := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	switch read := files(rules); {
	case named != "" && len(read) > 0:
		return fmt.Errorf("$KUBECONFIG: %s names no cluster", read[0])
	case named != "":
		return fmt.Errorf("$KUBECONFIG names %s, which does not exist", named)
	case len(read) > 0:
		return fmt.Errorf("kubeconfig %s names no cluster", read[0])
	}
	if by == "" {
		return errors.New("there is no kubeconfig, and this is no Pod: name one by $KUBECONFIG")
	}
	return fmt.Errorf("there is no kubeconfig: give one with %s or $KUBECONFIG", by)
}

// Check validates what a context of a kubeconfig needs: its cluster, its user, their certificates and keys, and the
// user's credential command. Errors: one line that names the field, and the file if the kubeconfig says where it comes
// from.
func Check(raw *api.Config, context string) error {
	c, known := raw.Contexts[context]
	if !known {
		return nil
	}
	cluster, user := raw.Clusters[c.Cluster], raw.AuthInfos[c.AuthInfo]
	switch {
	case cluster == nil:
		return fmt.Errorf("%scontexts[%s].context.cluster: there is no cluster %q", prefix(c.LocationOfOrigin),
			context, c.Cluster)
	case user == nil && c.AuthInfo != "":
		return fmt.Errorf("%scontexts[%s].context.user: there is no user %q", prefix(c.LocationOfOrigin), context,
			c.AuthInfo)
	}
	if err := checkCluster(cluster); err != nil {
		return fmt.Errorf("%sclusters[%s].%w", prefix(cluster.LocationOfOrigin), c.Cluster, err)
	}
	if user == nil {
		return nil
	}
	if err := checkUser(user); err != nil {
		return fmt.Errorf("%susers[%s].%w", prefix(user.LocationOfOrigin), c.AuthInfo, err)
	}
	return nil
}

// prefix returns the file as a prefix of a message, or "" if there is none.
func prefix(file string) string {
	if file == "" {
		return ""
	}
	return "kubeconfig " + file + ": "
}

func checkCluster(c *api.Cluster) error {
	if c.InsecureSkipTLSVerify {
		return nil
	}
	_, err := material("certificate-authority", c.CertificateAuthority, c.CertificateAuthorityData, "CERTIFICATE")
	return err
}

func checkUser(u *api.AuthInfo) error {
	certificate, err := material("client-certificate", u.ClientCertificate, u.ClientCertificateData, "CERTIFICATE")
	if err != nil {
		return err
	}
	key, err := material("client-key", u.ClientKey, u.ClientKeyData, "PRIVATE KEY")
	if err != nil {
		return err
	}
	if len(certificate) > 0 && len(key) > 0 {
		if _, err := tls.X509KeyPair(certificate, key); err != nil {
			return fmt.Errorf("client-certificate and client-key: %s", strings.TrimPrefix(err.Error(), "tls: "))
		}
	}
	if u.TokenFile != "" {
		if _, err := os.ReadFile(u.TokenFile); err != nil {
			return fmt.Errorf("tokenFile: %w", err)
		}
	}
	if u.Exec != nil {
		return checkExec(u.Exec)
	}
	return nil
}

// checkExec checks that the command exists, because without it every request would fail.
func checkExec(e *api.ExecConfig) error {
	var err error
	if filepath.Base(e.Command) != e.Command {
		_, err = os.Stat(e.Command)
	} else if _, err = exec.LookPath(e.Command); errors.Is(err, exec.ErrNotFound) {
		err = errors.New("it is not in $PATH")
	}
	if err == nil {
		return nil
	}
	hint := ""
	if e.InstallHint != "" {
		hint = ": " + strings.Join(strings.Fields(e.InstallHint), " ")
	}
	return fmt.Errorf("exec.command %q cannot be run, and it tells who the user is: %w%s", e.Command, err, hint)
}

// material returns the PEM data of a field, or of the file that it names; it returns nothing if both are empty. Data
// takes precedence over the file, as in client-go.
func material(field, file string, data []byte, block string) ([]byte, error) {
	where := field + "-data"
	switch {
	case len(data) > 0:
	case file == "":
		return nil, nil
	default:
		where = field + " " + file
		var err error
		if data, err = os.ReadFile(file); err != nil {
			var path *fs.PathError
			if errors.As(err, &path) {
				err = path.Err // where contains the path
			}
			return nil, fmt.Errorf("%s: %w", where, err)
		}
	}
	for rest := data; ; {
		var found *pem.Block
		if found, rest = pem.Decode(rest); found == nil {
			return nil, fmt.Errorf("%s: it has no PEM block of type %s (%d bytes)", where, block, len(data))
		}
		if strings.HasSuffix(found.Type, block) {
			return data, nil
		}
	}
}
