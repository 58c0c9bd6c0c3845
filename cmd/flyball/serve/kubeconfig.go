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
	if err := checkRegular(path); err != nil {
		return fmt.Errorf("--kubeconfig %w", err)
	}
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

// checkRegular returns an error if something other than a regular file is at the path, or at the end of its links.
// Opening a FIFO would block, and a device is not this process's to change.
func checkRegular(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: it is no regular file: name a file, or one that does not exist", path)
	}
	return nil
}

// WriteKubeconfig writes a kubeconfig for the API that only its owner may read. It is written beside the file and takes
// its place, so nobody who has opened the file before can read the token.
func (s *Socket) WriteKubeconfig(path string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write the kubeconfig: %w", err)
		}
	}()
	if err := checkRegular(path); err != nil {
		return err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".flyball-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(kubeconfig("https://"+s.Addr(), s.authority, s.token))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
