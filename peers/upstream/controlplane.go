package upstream

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Options configures a control plane. The zero value is etcd and kube-apiserver alone.
type Options struct {
	// Controllers is the --controllers flag of kube-controller-manager. Empty: it is not started.
	Controllers []string
	// AuthorizationMode is the flag of kube-apiserver. Empty: AlwaysAllow.
	AuthorizationMode string
	// APIServerArgs and ManagerArgs are appended to the command lines.
	APIServerArgs, ManagerArgs []string
	// Users are further users by token; the value is the user's name. Under RBAC they may do nothing at first.
	// The user admin may always do everything.
	Users map[string]string
	// Log receives a line for each step. Nil: nowhere.
	Log io.Writer
}

// ControlPlane is a running one.
type ControlPlane struct {
	// Dir holds its files, the logs of the processes among them (NAME.log).
	Dir string
	// URL is the API server's, https on loopback.
	URL string
	// Kubeconfig is the path of a kubeconfig for the user admin.
	Kubeconfig string
	// ManagerURL and ManagerPID are kube-controller-manager's, empty without it. It may not be ready yet. Whoever
	// asks gets its metrics and profiles there; its certificate is its own.
	ManagerURL string
	ManagerPID int

	processes []*process // in order of start
	options   Options
}

const adminToken = "admin-token"

// Start builds what is missing and starts the processes. When it returns, the API server is ready. All
// processes end with [ControlPlane.Stop], and at the latest when this process ends.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.AuthorizationMode == "" {
		o.AuthorizationMode = "AlwaysAllow"
	}
	bin, err := Build(ctx, o.Log)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "flyball-controlplane-")
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{Dir: dir, options: o}
	if err := c.start(ctx, bin); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context, bin string) error {
	if err := c.writeFiles(); err != nil {
		return err
	}
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	etcd := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	_, err = c.Run("etcd", filepath.Join(bin, "etcd"),
		"--data-dir="+filepath.Join(c.Dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		fmt.Sprintf("--listen-peer-urls=http://127.0.0.1:%d", ports[1]))
	if err != nil {
		return err
	}
	if err := c.waitOK(ctx, "etcd", etcd+"/health"); err != nil {
		return err
	}
	c.URL = fmt.Sprintf("https://127.0.0.1:%d", ports[2])
	_, err = c.Run("kube-apiserver", filepath.Join(bin, "kube-apiserver"), append([]string{
		"--etcd-servers=" + etcd, fmt.Sprintf("--secure-port=%d", ports[2]), "--bind-address=127.0.0.1",
		"--cert-dir=" + filepath.Join(c.Dir, "certs"), "--token-auth-file=" + c.file("tokens.csv"),
		"--service-account-issuer=https://flyball.test", "--service-account-key-file=" + c.file("sa.key"),
		"--service-account-signing-key-file=" + c.file("sa.key"),
		"--authorization-mode=" + c.options.AuthorizationMode, "--disable-admission-plugins=ServiceAccount",
		"--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/16,fd00:10::/112",
	}, c.options.APIServerArgs...)...)
	if err != nil {
		return err
	}
	if err := c.waitOK(ctx, "kube-apiserver", c.URL+"/readyz"); err != nil {
		return err
	}
	if c.Kubeconfig, err = c.WriteKubeconfig("admin", adminToken); err != nil {
		return err
	}
	fmt.Fprintf(c.options.Log, "kube-apiserver %s is ready at %s\n", Version, c.URL)
	if len(c.options.Controllers) == 0 {
		return nil
	}
	managerPort, err := freePorts(1)
	if err != nil {
		return err
	}
	c.ManagerURL = fmt.Sprintf("https://127.0.0.1:%d", managerPort[0])
	const manager = "kube-controller-manager"
	c.ManagerPID, err = c.Run(manager, filepath.Join(bin, manager), append([]string{
		"--kubeconfig=" + c.Kubeconfig, "--leader-elect=false", "--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", managerPort[0]), "--cert-dir=" + filepath.Join(c.Dir, "manager-certs"),
		"--authorization-always-allow-paths=/healthz,/metrics,/debug/pprof/*",
		"--controllers=" + strings.Join(c.options.Controllers, ","),
	}, c.options.ManagerArgs...)...)
	return err
}

// writeFiles writes the tokens and the key of the service accounts.
func (c *ControlPlane) writeFiles() error {
	tokens := fmt.Sprintf("%s,admin,admin,system:masters\n", adminToken)
	for token, user := range c.options.Users {
		tokens += fmt.Sprintf("%s,%s,%s\n", token, user, user)
	}
	if err := os.WriteFile(c.file("tokens.csv"), []byte(tokens), 0o600); err != nil {
		return err
	}
	return WriteServiceAccountKey(c.file("sa.key"))
}

// WriteServiceAccountKey writes a new key with which an API server signs the tokens of service accounts.
func WriteServiceAccountKey(path string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	return os.WriteFile(path, block, 0o600)
}

// WriteKubeconfig writes a kubeconfig for the user with the given token and returns its path.
func (c *ControlPlane) WriteKubeconfig(user, token string) (string, error) {
	path := c.file(user + ".kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: %[1]s
clusters:
- name: controlplane
  cluster: {server: %[2]q, certificate-authority: %[3]q}
contexts:
- name: %[1]s
  context: {cluster: controlplane, user: %[1]s}
users:
- name: %[1]s
  user: {token: %[4]q}
`, user, c.URL, filepath.Join(c.Dir, "certs", "apiserver.crt"), token)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

func (c *ControlPlane) file(name string) string { return filepath.Join(c.Dir, name) }

// waitOK asks url until it answers 200, the named process ends, three minutes have passed or ctx is done.
func (c *ControlPlane) waitOK(ctx context.Context, name, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	// The certificate is made by the server while it starts; this asks for health only.
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
	}
	p := c.processes[len(c.processes)-1]
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+adminToken)
		if resp, err := client.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended while it started; the end of its log:\n%s", name, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; the end of its log:\n%s", name, context.Cause(ctx), p.tail())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// PIDs are the processes, in the order in which they were started.
func (c *ControlPlane) PIDs() (pids []int) {
	for _, p := range c.processes {
		pids = append(pids, p.cmd.Process.Pid)
	}
	return pids
}

// Stop ends all processes, the last started first, and removes the files.
func (c *ControlPlane) Stop() error {
	var errs []error
	for i := len(c.processes) - 1; i >= 0; i-- {
		errs = append(errs, c.processes[i].stop())
	}
	c.processes = nil
	return errors.Join(append(errs, os.RemoveAll(c.Dir))...)
}

// freePorts returns ports on loopback that were free a moment ago.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
