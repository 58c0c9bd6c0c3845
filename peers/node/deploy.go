package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/manifest"
)

const (
	// Theirs makes kube-controller-manager run all its usual controllers, Ours all but those that flyball manager runs
	// in its place.
	Theirs = "*"
	Ours   = "*,-deployment-controller,-replicaset-controller,-endpoints-controller,-endpointslice-controller," +
		"-endpointslice-mirroring-controller"
	// selection are the controllers of flyball manager.
	selection = "--controllers=deployment,replicaset,endpoint,endpointslice,endpointslicemirroring"
	// manager is the Deployment, and its lease, in the namespace system.
	manager = "flyball-manager"
	system  = metav1.NamespaceSystem
)

// DeployManager deploys flyball manager, as docs/kind does: a Deployment needs a Deployment controller, so a manager
// outside the cluster's pods runs until the deployed one is ready. It returns when a pod has the lease.
func (n *Node) DeployManager(ctx context.Context) error {
	image, err := Image(ctx, "flyball")
	if err != nil {
		return err
	}
	if err := n.Load(ctx, image); err != nil {
		return err
	}
	root, err := repository()
	if err != nil {
		return err
	}
	program, err := os.ReadFile(filepath.Join(root, "bin", "image", "flyball", "program"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(n.file("flyball"), program, 0o755); err != nil {
		return err
	}
	err = n.StartProgram(ctx, "flyball", "--port=10300")
	if err != nil {
		return err
	}
	if err := n.Apply(ctx, filepath.Join(root, "deploy")); err != nil {
		return err
	}
	if err := n.AwaitDeployment(ctx, system, manager); err != nil {
		return err
	}
	if err := n.StopProgram(ctx, "flyball"); err != nil {
		return err
	}
	_, err = n.AwaitLeader(ctx, "")
	return err
}

// Apply creates the objects of a kustomization.
func (n *Node) Apply(ctx context.Context, dir string) error {
	root, err := repository()
	if err != nil {
		return err
	}
	text, err := kustomize(ctx, root, "build", dir)
	if err != nil {
		return err
	}
	return n.Create(ctx, dir, text)
}

// kustomize runs the program of that name. Root is the folder of the root module.
func kustomize(ctx context.Context, root string, args ...string) (string, error) {
	tool := []string{"tool", "-modfile=" + filepath.Join(root, "tools", "go.mod"), "kustomize"}
	return output(exec.CommandContext(ctx, "go", append(tool, args...)...))
}

// Create creates the objects that are written in YAML, in the namespace default unless they name another one. From is
// where the text is from, for messages.
func (n *Node) Create(ctx context.Context, from, text string) error {
	objects, err := manifest.Read(from, strings.NewReader(text))
	if err != nil {
		return err
	}
	admin, err := client.New(n.Config, client.Options{})
	if err != nil {
		return err
	}
	for _, o := range objects {
		namespaced, err := admin.IsObjectNamespaced(ctx, o)
		switch {
		case meta.IsNoMatchError(err): // another one of objects defines the kind
		case err != nil:
			return err
		case namespaced && o.GetNamespace() == "":
			o.SetNamespace(metav1.NamespaceDefault)
		}
	}
	return manifest.Install(ctx, admin, objects)
}

// AwaitDeployment waits until a Deployment is rolled out.
func (n *Node) AwaitDeployment(ctx context.Context, namespace, name string) error {
	return eventually(ctx, fmt.Sprintf("the Deployment %s/%s is not rolled out", namespace, name), func() error {
		d, err := n.Client.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s, want := d.Status, *d.Spec.Replicas
		if s.ObservedGeneration < d.Generation || s.Replicas != want || s.UpdatedReplicas != want ||
			s.AvailableReplicas != want {
			return fmt.Errorf("want %d pods, have %d, of which %d are updated and %d available", want, s.Replicas,
				s.UpdatedReplicas, s.AvailableReplicas)
		}
		return nil
	})
}

// AwaitLeader waits until a pod of the manager has the lease, but not as the identity before. It returns its identity,
// which begins with the pod's name and an underscore.
func (n *Node) AwaitLeader(ctx context.Context, before string) (identity string, err error) {
	err = eventually(ctx, "no other pod has the lease", func() error {
		lease, err := n.Client.CoordinationV1().Leases(system).Get(ctx, manager, metav1.GetOptions{})
		if err != nil {
			return err
		}
		identity = ptr.Deref(lease.Spec.HolderIdentity, "")
		if !strings.HasPrefix(identity, manager+"-") || identity == before {
			return fmt.Errorf("%q has it", identity)
		}
		return nil
	})
	return identity, err
}
