package node

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"

	"github.com/flyball-dev/flyball/peers/upstream"
)

const (
	name     = "node" // of the node
	services = "10.96.0.0/16"
	pods     = "10.244.0.0/16"
)

// users are those of the API server that are no service accounts. Each one's token is its name. The roles that
// Kubernetes binds to these names by itself are all they get.
var users = []struct{ name, user, groups string }{
	{"admin", "admin", "system:masters"},
	{"kubelet", "system:node:" + name, "system:nodes"},
	{"kube-controller-manager", "system:kube-controller-manager", ""},
	{"kube-scheduler", "system:kube-scheduler", ""},
	{"kube-proxy", "system:kube-proxy", ""},
}

// command returns the command line of a program.
func (n *Node) command(program string) ([]string, error) {
	config := "--kubeconfig=/node/" + program + ".kubeconfig"
	switch program {
	case "containerd":
		return []string{"/usr/bin/containerd", "--config=/node/containerd.toml"}, nil
	case "etcd":
		return []string{
			"/kubernetes/etcd", "--data-dir=/var/lib/etcd/data", "--unsafe-no-fsync", "--log-level=warn",
			"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
			"--listen-peer-urls=http://127.0.0.1:2380",
		}, nil
	case "kube-apiserver":
		return []string{
			"/kubernetes/kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", "--secure-port=6443",
			"--advertise-address=" + n.IP, "--cert-dir=/node/certs", "--token-auth-file=/node/tokens.csv",
			"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
			"--service-cluster-ip-range=" + services, "--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=/node/sa.key", "--service-account-signing-key-file=/node/sa.key",
			"--kubelet-preferred-address-types=InternalIP",
		}, nil
	case "kube-controller-manager":
		return []string{
			"/kubernetes/kube-controller-manager", config, "--leader-elect=false", "--use-service-account-credentials",
			"--root-ca-file=/node/certs/apiserver.crt", "--service-account-private-key-file=/node/sa.key",
			"--node-monitor-grace-period=20s",
		}, nil
	case "kube-scheduler":
		return []string{"/kubernetes/kube-scheduler", config, "--leader-elect=false"}, nil
	case "kubelet":
		return []string{
			"/kubernetes/kubelet", config, "--config=/node/kubelet.yaml", "--hostname-override=" + name,
			"--node-ip=" + n.IP,
		}, nil
	case "kube-proxy":
		return []string{
			"/kubernetes/kube-proxy", config, "--proxy-mode=iptables", "--hostname-override=" + name,
			"--cluster-cidr=" + pods, "--oom-score-adj=0",
			// The size of the table is the machine's, and a container cannot change it.
			"--conntrack-max-per-core=0", "--conntrack-min=0",
		}, nil
	case "flyball":
		return []string{"/node/flyball", "manager", "--kubeconfig=/node/admin.kubeconfig", selection}, nil
	}
	return nil, fmt.Errorf("there is no program %s", program)
}

// SetControllers starts kube-controller-manager, or starts it anew, with these controllers.
func (n *Node) SetControllers(ctx context.Context, controllers string) error {
	return n.StartProgram(ctx, "kube-controller-manager", "--controllers="+controllers)
}

// files are the configurations that are the same on every node.
var files = map[string]string{
	"containerd.toml": `version = 2
[plugins."io.containerd.grpc.v1.cri"]
restrict_oom_score_adj = true
sandbox_image = "docker.io/library/` + pause + `"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "/node/cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
`,
	"cni/10-bridge.conflist": `{"cniVersion": "1.0.0", "name": "bridge", "plugins": [
{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
 "ipam": {"type": "host-local", "ranges": [[{"subnet": "` + pods + `"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
{"type": "portmap", "capabilities": {"portMappings": true}}]}
`,
	// The container lacks the power to protect a process from the kernel's out-of-memory killer (see powers), hence
	// oomScoreAdj. Only this machine and its containers reach the kubelet's port, so that it need not ask who calls. A
	// disk that is nearly full is the machine's own affair.
	"kubelet.yaml": `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
evictionHard: {memory.available: 0%, nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%}
imageGCHighThresholdPercent: 100
`,
}

// writeFiles writes what the programs read.
func (n *Node) writeFiles() error {
	if err := os.Mkdir(n.file("cni"), 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(n.file(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	var tokens strings.Builder
	for _, u := range users {
		fmt.Fprintf(&tokens, "%s,%s,%s,%q\n", u.name, u.user, u.name, u.groups)
	}
	if err := os.WriteFile(n.file("tokens.csv"), []byte(tokens.String()), 0o600); err != nil {
		return err
	}
	return upstream.WriteServiceAccountKey(n.file("sa.key"))
}

// writeKubeconfig writes the kubeconfig of a user when the API server has made its certificate.
func (n *Node) writeKubeconfig(ctx context.Context, user string) error {
	var certificate []byte
	err := eventually(ctx, "the API server has no certificate", func() (err error) {
		certificate, err = os.ReadFile(n.file("certs/apiserver.crt"))
		return err
	})
	if err != nil {
		return err
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: node
clusters:
- name: node
  cluster: {server: "https://%s:6443", certificate-authority-data: %s}
contexts:
- name: node
  context: {cluster: node, user: %q}
users:
- name: %[3]q
  user: {token: %[3]q}
`, n.IP, base64.StdEncoding.EncodeToString(certificate), user)
	return os.WriteFile(n.file(user+".kubeconfig"), []byte(text), 0o600)
}
