package serve

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
)

// prepareKubeconfig writes the kubeconfig to path, or to a temporary file if path is empty. remove removes the
// temporary file. written is absolute, because users set it in other folders too.
func prepareKubeconfig(path string, s *Socket) (written string, remove func(), err error) {
	if path != "" {
		if err = mayOverwrite(path); err != nil {
			return "", nil, err
		}
		if path, err = filepath.Abs(path); err != nil {
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

// kubeconfig returns a kubeconfig for the server, with its certificate and the clients' token.
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

// mayOverwrite returns an error if the file exists, unless it is empty or was written by [Socket.WriteKubeconfig]. Any
// other kubeconfig may be the only one with the credentials of the user's clusters.
func mayOverwrite(path string) error {
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 {
		return nil // the write will report the problem
	}
	if config, err := clientcmd.Load(text); err == nil {
		cluster, user := config.Clusters["flyball"], config.AuthInfos["flyball"]
		if cluster != nil && user != nil &&
			string(text) == kubeconfig(cluster.Server, cluster.CertificateAuthorityData, user.Token) {
			return nil
		}
	}
	return fmt.Errorf(
		"--kubeconfig %s: it would be overwritten, and was not written by flyball: name another file, or remove it",
		path,
	)
}

// WriteKubeconfig writes a kubeconfig for the API that only its owner may read.
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
	if err := f.Chmod(0o600); err != nil { // an existing file may have been readable by everyone
		return err
	}
	_, err = f.WriteString(kubeconfig("https://"+s.Addr(), s.authority, s.token))
	return err
}
