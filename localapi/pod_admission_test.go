package localapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi"
)

// podOfClass is a pod that names a runtime class.
func podOfClass(name, class string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		RuntimeClassName: &class, Containers: []corev1.Container{{Name: "c", Image: "x"}},
	}}
}

// TestRuntimeClass: a pod gets the overhead and the constraints of its class. peers/localapi compares every case with
// kube-apiserver, this test shows that there is nothing else to start.
func TestRuntimeClass(t *testing.T) {
	overhead := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
	s := localapi.NewTest(t, &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "heavy"}, Handler: "h", Overhead: &nodev1.Overhead{PodFixed: overhead},
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"kind": "heavy"}},
	})
	pods := kubernetes.NewForConfigOrDie(s.RESTConfig()).CoreV1().Pods("default")
	got, err := pods.Create(t.Context(), podOfClass("a", "heavy"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Spec.Overhead.Cpu().String() != "250m" || got.Spec.NodeSelector["kind"] != "heavy" {
		t.Errorf("overhead %v, node selector %v", got.Spec.Overhead, got.Spec.NodeSelector)
	}
	_, err = pods.Create(t.Context(), podOfClass("b", "light"), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `RuntimeClass "light" not found`) {
		t.Errorf("a class that does not exist: %v", err)
	}
	other := podOfClass("c", "heavy")
	other.Spec.NodeSelector = map[string]string{"kind": "light"}
	_, err = pods.Create(t.Context(), other, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "conflict: ") {
		t.Errorf("another node selector: %v", err)
	}
}

// TestTwoLimitRanges: each of two LimitRanges fills in what is still missing, in the order of their names, and the last
// one leaves its note. kube-apiserver takes them in random order, so peers/localapi cannot compare this case.
func TestTwoLimitRanges(t *testing.T) {
	limits := func(name string, defaults ...string) *corev1.LimitRange {
		requests := corev1.ResourceList{}
		for i := 0; i < len(defaults); i += 2 {
			requests[corev1.ResourceName(defaults[i])] = resource.MustParse(defaults[i+1])
		}
		return &corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, DefaultRequest: requests,
			}}},
		}
	}
	s := localapi.NewTest(t, limits("b", "cpu", "200m", "memory", "1Gi"), limits("a", "cpu", "100m"))
	got, err := core(s).Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	requests := got.Spec.Containers[0].Resources.Requests
	if requests.Cpu().String() != "100m" || requests.Memory().String() != "1Gi" {
		t.Errorf("requests: %v", requests)
	}
	const want = "LimitRanger plugin set: memory request for container c"
	if note := got.Annotations["kubernetes.io/limit-ranger"]; note != want {
		t.Errorf("got %q, want %q", note, want)
	}
}

// TestPriorityClass: a pod gets the priority of its class, or else of the default class, of which there is one at most.
// peers/localapi compares the other cases with kube-apiserver.
func TestPriorityClass(t *testing.T) {
	s := localapi.NewTest(t, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000, PreemptionPolicy: ptr.To(corev1.PreemptNever),
	})
	c := kubernetes.NewForConfigOrDie(s.RESTConfig())
	create := func(name, class string) (string, error) {
		pod := podOfClass(name, "")
		pod.Spec.RuntimeClassName, pod.Spec.PriorityClassName = nil, class
		pod, err := c.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(pod.Spec.PriorityClassName, *pod.Spec.Priority, *pod.Spec.PreemptionPolicy), nil
	}
	for class, want := range map[string]string{
		"high": "high1000Never", "": "0PreemptLowerPriority",
		"system-node-critical": "system-node-critical2000001000PreemptLowerPriority",
	} {
		if got, err := create("p"+class, class); got != want || err != nil {
			t.Errorf("a pod of class %q: %s, %v; want %s", class, got, err, want)
		}
	}
	const want = `pods "lost" is forbidden: no PriorityClass with name low was found`
	if _, err := create("lost", "low"); !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("a pod of a class that does not exist: %v", err)
	}
	classes := c.SchedulingV1().PriorityClasses()
	standard := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Value: 7, GlobalDefault: true}
	if _, err := classes.Create(t.Context(), standard, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := create("default", ""); got != "a7PreemptLowerPriority" || err != nil {
		t.Errorf("a pod without a class: %s, %v", got, err)
	}
	if _, err := classes.Update(t.Context(), standard, metav1.UpdateOptions{}); err != nil {
		t.Errorf("update the default class: %v", err)
	}
	standard.Name = "b"
	_, err := classes.Create(t.Context(), standard, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "PriorityClass a is already marked as default") {
		t.Errorf("a second default class: %v", err)
	}
}

// TestWebhooksSeeAdmittedPods: webhooks see what the server itself does to a pod, and it judges what they make of it.
func TestWebhooksSeeAdmittedPods(t *testing.T) {
	configuration := mutating("a")
	configuration.Webhooks[0].Rules[0].Resources = []string{"pods"}
	s := localapi.NewTest(t, configuration)
	var seen corev1.Pod
	s.HandleWebhook("hooks/a", hook(func(r *admissionv1.AdmissionRequest) admissionv1.AdmissionResponse {
		if err := json.Unmarshal(r.Object.Raw, &seen); err != nil {
			t.Error(err)
		}
		return admissionv1.AdmissionResponse{
			Allowed: true, PatchType: ptr.To(admissionv1.PatchTypeJSONPatch),
			Patch: []byte(`[{"op": "add", "path": "/spec/overhead", "value": {"cpu": "1"}}]`),
		}
	}))
	pod := podOfClass("a", "")
	pod.Spec.RuntimeClassName = nil
	_, err := kubernetes.NewForConfigOrDie(s.RESTConfig()).CoreV1().Pods("default").Create(t.Context(), pod,
		metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "Pod Overhead set without") {
		t.Errorf("a pod with an overhead of a webhook: %v", err)
	}
	if len(seen.Spec.Tolerations) != 2 || seen.Spec.Priority == nil || seen.Spec.ServiceAccountName != "default" {
		t.Errorf("the webhook sees %+v", seen.Spec)
	}
}

// TestServiceAccounts: a pod gets the volume with the token of its account, which must exist, unless the pod or the
// account does not want it.
//
// Source: k8s.io/kubernetes v1.37.2 plugin/pkg/admission/serviceaccount/admission_test.go.
func TestServiceAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none, some := ptr.To(false), ptr.To(true)
		s := localapi.NewTestWith(t, localapi.Options{ServiceAccounts: true},
			&corev1.ServiceAccount{
				ObjectMeta: metav1.ObjectMeta{Name: "a"}, AutomountServiceAccountToken: none,
				ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
			})
		c := kubernetes.NewForConfigOrDie(s.RESTConfig()).CoreV1()
		create := func(name, account string, mount *bool, path string) (*corev1.PodSpec, error) {
			pod := podOfClass(name, "")
			pod.Spec.RuntimeClassName, pod.Spec.ServiceAccountName = nil, account
			pod.Spec.AutomountServiceAccountToken = mount
			pod.Spec.InitContainers = []corev1.Container{{
				Name: "init", Image: "x", VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: path}},
			}}
			pod.Spec.Volumes = []corev1.Volume{{Name: "v"}}
			pod, err := c.Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
			return &pod.Spec, err
		}
		_, err := create("lost", "b", nil, "/")
		const want = `pods "lost" is forbidden: error looking up service account default/b: ` +
			`serviceaccount "b" not found`
		if err == nil || err.Error() != want {
			t.Errorf("an account that does not exist: %v", err)
		}
		before := time.Now()
		if _, err := create("lost", "", nil, "/"); !apierrors.IsForbidden(err) || time.Since(before) != 10*time.Second {
			t.Errorf("after %v: %v", time.Since(before), err)
		}
		time.AfterFunc(time.Second, func() {
			_, err := c.ServiceAccounts("default").Create(t.Context(),
				&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
			if err != nil {
				t.Error(err)
			}
		})
		const path = "/var/run/secrets/kubernetes.io/serviceaccount"
		for _, c := range []struct {
			name, account string
			mount         *bool
			path          string // where the init container has a volume already
			mounts        int
		}{
			{"plain", "", nil, "/", 3},
			{"opts-out", "", none, "/", 1},
			{"has-one", "", nil, path, 2},
			{"account-opts-out", "a", nil, "/", 1},
			{"opts-in", "a", some, "/", 3},
		} {
			spec, err := create(c.name, c.account, c.mount, c.path)
			if err != nil {
				t.Fatal(err)
			}
			volume := spec.Volumes[len(spec.Volumes)-1]
			mounts := append(spec.Containers[0].VolumeMounts, spec.InitContainers[0].VolumeMounts...)
			if len(mounts) != c.mounts || (len(spec.Volumes) > 1) != (c.mounts > 1) {
				t.Errorf("%s: %d mounts of %d volumes", c.name, len(mounts), len(spec.Volumes))
			}
			if c.mounts > 1 && (!strings.HasPrefix(volume.Name, "kube-api-access-") || mounts[0].Name != volume.Name ||
				mounts[0].MountPath != path || len(volume.Projected.Sources) != 3) {
				t.Errorf("%s: %+v is mounted by %+v", c.name, volume, mounts[0])
			}
			if (len(spec.ImagePullSecrets) == 1) != (c.account == "a") {
				t.Errorf("%s: image pull secrets %v", c.name, spec.ImagePullSecrets)
			}
		}
	})
}
