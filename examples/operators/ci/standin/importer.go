package standin

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/fleet"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// ImporterName is the name of the importer.
const ImporterName = "fake-importer"

// ImporterOptions configure the importer. The zero value imports every image with a digest.
type ImporterOptions struct {
	// Refuse returns the reason why an image cannot be pulled, or nil if it can. A nil Refuse accepts all.
	Refuse func(pullSpec string) error
}

type importer struct {
	client.Client
	o ImporterOptions
}

// AddImporter adds an importer to a cluster's manager.
func AddImporter(c *fleet.Cluster, o ImporterOptions) error {
	return ctrl.NewControllerManagedBy(c.Manager).Named(ImporterName).For(&api.ImageStreamImport{}).Complete(
		&importer{c.Client, o},
	)
}

// Reconcile answers an import once. It writes the stream first, so that a process that dies in between repeats the same
// write.
func (i *importer) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	imp := &api.ImageStreamImport{}
	if err := i.Get(ctx, r.NamespacedName, imp); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if len(imp.Status.Images) > 0 || imp.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	answers := make([]api.ImageImportStatus, len(imp.Spec.Images))
	for n, wanted := range imp.Spec.Images {
		digest, err := i.pull(wanted.From.Name)
		if err != nil {
			answers[n].Status = api.ImportMessage{Reason: "InternalError", Message: err.Error()}
			continue
		}
		if err := i.point(ctx, imp, wanted, digest); err != nil {
			return ctrl.Result{}, err
		}
		answers[n].Image = &api.ImportedImage{Name: digest}
	}
	imp.Status.Images = answers
	return ctrl.Result{}, client.IgnoreNotFound(i.Status().Update(ctx, imp))
}

// pull returns the digest of an image.
func (i *importer) pull(spec string) (string, error) {
	_, digest, ok := strings.Cut(spec, "@")
	if !ok {
		return "", fmt.Errorf("%s names no digest", spec)
	}
	if i.o.Refuse == nil {
		return digest, nil
	}
	return digest, i.o.Refuse(spec)
}

// point makes the tag of the stream point at the image.
func (i *importer) point(ctx context.Context, imp *api.ImageStreamImport, wanted api.ImageImportSpec,
	digest string,
) error {
	stream := &api.ImageStream{}
	if err := i.Get(ctx, client.ObjectKey{Namespace: imp.Namespace, Name: imp.Spec.Stream}, stream); err != nil {
		return fmt.Errorf("get stream to import into: %w", err)
	}
	if t := stream.Tag(wanted.To.Name); t != nil && len(t.Items) > 0 && t.Items[0].Image == digest {
		return nil
	}
	stream.Point(wanted.To.Name,
		api.TagEvent{Created: metav1.NewTime(time.Now()), Image: digest, DockerImageReference: wanted.From.Name})
	if err := i.Status().Update(ctx, stream); err != nil {
		return fmt.Errorf("update stream: %w", err)
	}
	return nil
}
