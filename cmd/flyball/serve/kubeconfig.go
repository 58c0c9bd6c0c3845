package serve

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
)

// prepareKubeconfig writes the kubeconfig to path, or to a temporary file, which remove removes.
func prepareKubeconfig(path string, s *Socket) (written string, remove func(), err error) {
	if path != "" {
		if err := mayOverwrite(path); err != nil {
			return "", nil, err
		}
		return path, func() {}, s.WriteKubeconfig(path)
	}
	dir, err := os.MkdirTemp("", "flyball-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	path = filepath.Join(dir, "kubeconfig")
	if err := s.WriteKubeconfig(path); err != nil {
		remove()
		return "", nil, err
	}
	return path, remove, nil
}

// kubeconfig is a kubeconfig for a server with a certificate, whose clients have a token.
func kubeconfig(server string, authority []byte, token string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: flyball
clusters:
- name: flyball
  cluster: {server: %q, certificate-authority-data: %s}
contexts:
- name: flyball
  context: {cluster: flyball, user: flyball}
users:
- name: flyball
  user: {token: %q}
`, server, base64.StdEncoding.EncodeToString(authority), token)
}

// mayOverwrite refuses a file that is there, unless it is empty, or as [Socket.WriteKubeconfig] writes it: it may have all that
// somebody needs to reach their clusters.
func mayOverwrite(path string) error {
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 {
		return nil // What is wrong is found by the write.
	}
	if config, err := clientcmd.Load(text); err == nil {
		cluster, user := config.Clusters["flyball"], config.AuthInfos["flyball"]
		if cluster != nil && user != nil && string(text) == kubeconfig(cluster.Server, cluster.CertificateAuthorityData, user.Token) {
			return nil
		}
	}
	return fmt.Errorf("--kubeconfig %s: it would be overwritten, and was not written by flyball: name another file, or remove it", path)
}

// WriteKubeconfig writes a kubeconfig for the API, which nobody else may read.
func (s *Socket) WriteKubeconfig(path string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write the kubeconfig: %w", err)
		}
	}()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Chmod(0o600); err != nil { // it may have been there, for everyone to read
		return err
	}
	_, err = f.WriteString(kubeconfig("https://"+s.Addr(), s.authority(), s.token))
	return err
}
