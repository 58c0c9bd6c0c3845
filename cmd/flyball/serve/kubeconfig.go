package serve

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
)

// prepareKubeconfig writes the kubeconfig to the file of o, and to the directory of the store. Without both, it writes
// a temporary file, which remove removes. written is absolute, because users set it in other folders too.
func prepareKubeconfig(o Options, s *Socket) (written string, remove func(), err error) {
	remove = func() {}
	var paths []string
	if o.Kubeconfig != "" {
		if err := mayOverwrite(o.Kubeconfig); err != nil {
			return "", nil, err
		}
		paths = append(paths, o.Kubeconfig)
	}
	if o.Store.Dir != "" {
		if err := s.known.store(o.Store); err != nil {
			return "", nil, err
		}
		paths = append(paths, storedKubeconfig(o.Store))
	}
	if len(paths) == 0 {
		dir, err := os.MkdirTemp("", "flyball-")
		if err != nil {
			return "", nil, err
		}
		remove = func() { _ = os.RemoveAll(dir) }
		paths = append(paths, filepath.Join(dir, "kubeconfig"))
	}
	for _, path := range paths {
		err = errors.Join(err, s.WriteKubeconfig(path))
	}
	if err == nil {
		written, err = filepath.Abs(paths[0])
	}
	if err != nil {
		remove()
	}
	return written, remove, err
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

// parse is the inverse of kubeconfig. ours is false for a text that it has not written.
func parse(text []byte) (server string, authority []byte, token string, ours bool) {
	config, err := clientcmd.Load(text)
	if err != nil {
		return "", nil, "", false
	}
	cluster, user := config.Clusters["flyball"], config.AuthInfos["flyball"]
	if cluster == nil || user == nil {
		return "", nil, "", false
	}
	server, authority, token = cluster.Server, cluster.CertificateAuthorityData, user.Token
	return server, authority, token, string(text) == kubeconfig(server, authority, token)
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
	if _, _, _, ours := parse(text); ours {
		return nil
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

// WriteKubeconfig writes a kubeconfig for the API that only its owner may read.
func (s *Socket) WriteKubeconfig(path string) error {
	if err := writePrivate(path, kubeconfig("https://"+s.Addr(), s.known.authority.PEM(), s.known.Token)); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return nil
}

// writePrivate writes a file that only its owner may read. The text is written beside the file and takes its place, so
// nobody who has opened the file before can read it.
func writePrivate(path, text string) error {
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
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
