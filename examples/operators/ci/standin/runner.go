package standin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/ciconfig"
	"github.com/flyball-dev/flyball/examples/operators/ci/ephemeralcluster"
	"github.com/flyball-dev/flyball/examples/operators/ci/fleet"
	"github.com/flyball-dev/flyball/examples/operators/ci/imagestreamtag"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile"
)

// RunnerName is the name of the job runner.
const RunnerName = "fake-job-runner"

// RunnerOptions configure the job runner.
type RunnerOptions struct {
	// Took is how long a job takes to build images or to make a cluster. Zero means 10 s.
	Took time.Duration
	// Agent has the images that a promotion job builds. Nil means none.
	Agent *ciconfig.Agent
}

type runner struct {
	hub    client.Client
	builds map[string]client.Client
	o      RunnerOptions
}

// AddRunner adds a job runner to the hub of a fleet.
func AddRunner(f *fleet.Fleet, o RunnerOptions) error {
	o.Took = cmp.Or(o.Took, 10*time.Second)
	r := &runner{hub: f.Hub.Client, builds: map[string]client.Client{}, o: o}
	for _, c := range f.Builds {
		r.builds[c.Name] = c.Client
	}
	return ctrl.NewControllerManagedBy(f.Hub.Manager).Named(RunnerName).For(&api.ProwJob{}).Complete(r)
}

// Reconcile moves a job one step forward. The step depends only on the job and its age.
func (r *runner) Reconcile(ctx context.Context, q ctrl.Request) (ctrl.Result, error) {
	job := &api.ProwJob{}
	if err := r.hub.Get(ctx, q.NamespacedName, job); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	build := r.builds[job.Spec.Cluster]
	isCluster := job.Labels[api.EphemeralClusterLabel] != ""
	switch {
	case build == nil:
		return ctrl.Result{}, reconcile.Terminal(fmt.Errorf("there is no build cluster %q", job.Spec.Cluster))
	case job.Complete() && isCluster:
		return ctrl.Result{}, r.cleanUp(ctx, build, job)
	case job.Complete():
		return ctrl.Result{}, nil
	case job.Status.State == "":
		job.Status.State, job.Status.URL = api.PendingState, "https://prow.example.com/view/"+job.Name
		return ctrl.Result{}, client.IgnoreNotFound(r.hub.Status().Update(ctx, job))
	}
	done, err := false, error(nil)
	if isCluster {
		done, err = r.provide(ctx, build, job)
	} else if done = r.age(job) >= r.o.Took; done {
		err = r.promote(ctx, job)
	}
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case !done:
		return ctrl.Result{RequeueAfter: max(r.o.Took-r.age(job), r.o.Took/4)}, nil
	}
	job.Finish(api.SuccessState, "")
	return ctrl.Result{}, client.IgnoreNotFound(r.hub.Status().Update(ctx, job))
}

func (r *runner) age(job *api.ProwJob) time.Duration { return time.Since(job.CreationTimestamp.Time) }

// promote creates the images of the job's commit, and points the tags at them, as the last step of a promotion job
// does.
func (r *runner) promote(ctx context.Context, job *api.ProwJob) error {
	refs := job.Spec.Refs
	if r.o.Agent == nil || refs == nil {
		return nil
	}
	for _, tag := range r.o.Agent.PromotedBy(refs.Org, refs.Repo, refs.BaseRef) {
		image := &api.Image{
			ObjectMeta:           metav1.ObjectMeta{},
			DockerImageReference: "registry.example.com/" + tag.Namespace + "/" + tag.Stream,
			DockerLabels: map[string]string{
				api.CommitLabel: refs.BaseSHA, api.BranchLabel: refs.BaseRef, api.SourceLabel: "https://github.com/" +
					refs.Org + "/" + refs.Repo,
			},
		}
		digest := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(tag.String()+refs.BaseSHA)))
		image.Name = api.ImageName(digest)
		if err := client.IgnoreAlreadyExists(r.hub.Create(ctx, image)); err != nil {
			return fmt.Errorf("create image: %w", err)
		}
		if err := r.point(ctx, tag, digest); err != nil {
			return err
		}
	}
	return nil
}

// point makes a tag of the hub point at the image.
func (r *runner) point(ctx context.Context, tag imagestreamtag.Ref, digest string) error {
	stream := &api.ImageStream{}
	err := r.hub.Get(ctx, tag.StreamKey(), stream)
	if apierrors.IsNotFound(err) {
		stream.Namespace, stream.Name = tag.Namespace, tag.Stream
		err = r.hub.Create(ctx, stream)
	}
	if err != nil {
		return fmt.Errorf("promote to %s: %w", tag, err)
	}
	if t := stream.Tag(tag.Tag); t != nil && len(t.Items) > 0 && t.Items[0].Image == digest {
		return nil
	}
	stream.Point(tag.Tag, api.TagEvent{Created: metav1.NewTime(time.Now()), Image: digest})
	if err := r.hub.Status().Update(ctx, stream); err != nil {
		return fmt.Errorf("promote to %s: %w", tag, err)
	}
	return nil
}

// provide creates the namespace of a job, then the credentials of a cluster, and waits for the signal.
func (r *runner) provide(ctx context.Context, build client.Client, job *api.ProwJob) (done bool, err error) {
	ns := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(job), Labels: map[string]string{api.JobIDLabel: job.Name}},
	}
	if err := create(ctx, build, ns); err != nil {
		return false, err
	}
	if r.age(job) < r.o.Took {
		return false, nil
	}
	credentials := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: ephemeralcluster.Credentials},
		Data:       map[string][]byte{"kubeconfig": []byte("the kubeconfig of a cluster made by " + job.Name)},
	}
	if err := create(ctx, build, credentials); err != nil {
		return false, err
	}
	signal := &corev1.Secret{}
	err = build.Get(ctx, client.ObjectKey{Namespace: ns.Name, Name: ephemeralcluster.DoneSignal}, signal, client.Live)
	return err == nil, client.IgnoreNotFound(err)
}

// create creates an object, unless it exists.
func create(ctx context.Context, c client.Client, obj client.Object) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj, client.Live)
	if apierrors.IsNotFound(err) {
		err = client.IgnoreAlreadyExists(c.Create(ctx, obj))
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// cleanUp removes the namespace of a job that has ended.
func (r *runner) cleanUp(ctx context.Context, build client.Client, job *api.ProwJob) error {
	ns := &corev1.Namespace{}
	err := build.Get(ctx, client.ObjectKey{Name: namespaceOf(job)}, ns, client.Live)
	if err != nil || ns.DeletionTimestamp != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(build.Delete(ctx, ns, client.OnlyThis(ns)))
}

func namespaceOf(job *api.ProwJob) string {
	digest := sha256.Sum256([]byte(job.Name))
	return fmt.Sprintf("ci-op-%x", digest[:5])
}

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
