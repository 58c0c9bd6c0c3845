package programs

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rollOut lets workloads come and go in a namespace of their own.
func (s *side) rollOut(ctx context.Context, namespace string) {
	s.kubectl("create", "namespace", namespace)
	s.kubectl("apply", "-n", namespace, "-f", "testdata/workloads.yaml")
	for _, workload := range []string{"statefulset/db", "daemonset/agent", "deployment/web"} {
		s.kubectl("rollout", "status", "-n", namespace, workload, "--timeout=2m")
	}
	s.becomes(ctx, namespace, map[string]string{
		"statefulset db": "3 of 3", "daemonset agent": "3 of 3", "deployment web": "3 of 3",
		"replicationcontroller old": "2 of 2", "endpoints db": "3", "job succeeds": "Complete , 3 succeeded",
		"job fails":    "Failed BackoffLimitExceeded, 0 succeeded",
		"job restarts": "Failed BackoffLimitExceeded, 0 succeeded",
		"job late":     "Failed DeadlineExceeded, 0 succeeded",
		"autoscaler":   "ScalingActive=False FailedGetResourceMetric",
		"budget":       "3 healthy, 1 may be disrupted", "quota": "4 jobs, 1 services",
		"pods": "11 running, scheduled by default-scheduler",
	})
	s.evict(ctx, namespace)
	s.kubectl("set", "image", "-n", namespace, "deployment/web", "c=nginx:2")
	s.kubectl("set", "image", "-n", namespace, "statefulset/db", "c=nginx:2")
	s.kubectl("scale", "-n", namespace, "statefulset/db", "--replicas=1")
	s.kubectl("scale", "-n", namespace, "rc/old", "--replicas=4")
	s.kubectl("delete", "-n", namespace, "daemonset/agent", "job/succeeds", "--cascade=foreground", "--timeout=2m")
	s.kubectl("rollout", "status", "-n", namespace, "statefulset/db", "--timeout=2m")
	s.kubectl("rollout", "status", "-n", namespace, "deployment/web", "--timeout=2m")
	s.becomes(ctx, namespace, map[string]string{
		"statefulset db": "1 of 1", "deployment web": "3 of 3", "replicationcontroller old": "4 of 4",
		"endpoints db": "1", "quota": "3 jobs, 1 services", "pods": "8 running, scheduled by default-scheduler",
	})
	s.kubectl("delete", "namespace", namespace, "--timeout=3m")
}

// evict evicts a pod that a budget lets go.
func (s *side) evict(ctx context.Context, namespace string) {
	s.t.Helper()
	pods, err := s.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil || len(pods.Items) == 0 {
		s.t.Fatalf("pods to evict: %v, %v", pods, err)
	}
	err = s.client.CoreV1().Pods(namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: pods.Items[0].Name},
	})
	if err != nil {
		s.t.Errorf("evict a pod of a Deployment with a budget for one: %v", err)
	}
}

// becomes waits until what is looked at is as wanted.
func (s *side) becomes(ctx context.Context, namespace string, want map[string]string) {
	s.t.Helper()
	var wrong []string
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		got, err := s.look(ctx, namespace)
		if err != nil {
			s.t.Fatal(err)
		}
		wrong = nil
		for what, value := range want {
			if got[what] != value {
				wrong = append(wrong, fmt.Sprintf("%s: %s, want %s", what, got[what], value))
			}
		}
		if len(wrong) == 0 {
			return
		}
	}
	s.t.Fatalf("two minutes later, in %s:\n%s", namespace, strings.Join(wrong, "\n"))
}

// look returns the state of everything in a namespace, by its name.
func (s *side) look(ctx context.Context, namespace string) (map[string]string, error) {
	seen := map[string]string{}
	all := metav1.ListOptions{}
	sets, err := s.client.AppsV1().StatefulSets(namespace).List(ctx, all)
	if err != nil {
		return nil, err
	}
	for _, o := range sets.Items {
		seen["statefulset "+o.Name] = fmt.Sprintf("%d of %d", o.Status.ReadyReplicas, o.Status.Replicas)
	}
	daemons, err := s.client.AppsV1().DaemonSets(namespace).List(ctx, all)
	if err != nil {
		return nil, err
	}
	for _, o := range daemons.Items {
		seen["daemonset "+o.Name] = fmt.Sprintf("%d of %d", o.Status.NumberReady, o.Status.DesiredNumberScheduled)
	}
	deployments, err := s.client.AppsV1().Deployments(namespace).List(ctx, all)
	if err != nil {
		return nil, err
	}
	for _, o := range deployments.Items {
		seen["deployment "+o.Name] = fmt.Sprintf("%d of %d", o.Status.ReadyReplicas, o.Status.Replicas)
	}
	controllers, err := s.client.CoreV1().ReplicationControllers(namespace).List(ctx, all)
	if err != nil {
		return nil, err
	}
	for _, o := range controllers.Items {
		seen["replicationcontroller "+o.Name] = fmt.Sprintf("%d of %d", o.Status.ReadyReplicas, o.Status.Replicas)
	}
	jobs, err := s.client.BatchV1().Jobs(namespace).List(ctx, all)
	if err != nil {
		return nil, err
	}
	for _, o := range jobs.Items {
		seen["job "+o.Name] = ended(&o)
	}
	return seen, s.lookFurther(ctx, namespace, seen)
}

// ended is how a Job ended.
func ended(o *batchv1.Job) string {
	for _, c := range o.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			return fmt.Sprintf("Complete , %d succeeded", o.Status.Succeeded)
		case batchv1.JobFailed:
			return fmt.Sprintf("Failed %s, %d succeeded", c.Reason, o.Status.Succeeded)
		}
	}
	return "not ended"
}

func (s *side) lookFurther(ctx context.Context, namespace string, seen map[string]string) error {
	all := metav1.ListOptions{}
	slices, err := s.client.DiscoveryV1().EndpointSlices(namespace).List(ctx, all)
	if err != nil {
		return err
	}
	for _, o := range slices.Items {
		seen["endpoints "+o.Labels["kubernetes.io/service-name"]] = fmt.Sprint(len(o.Endpoints))
	}
	scaler, err := s.client.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range scaler.Status.Conditions {
		if c.Type == "ScalingActive" {
			seen["autoscaler"] = fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason)
		}
	}
	budget, err := s.client.PolicyV1().PodDisruptionBudgets(namespace).Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	seen["budget"] = fmt.Sprintf("%d healthy, %d may be disrupted", budget.Status.CurrentHealthy,
		budget.Status.DisruptionsAllowed)
	quota, err := s.client.CoreV1().ResourceQuotas(namespace).Get(ctx, "quota", metav1.GetOptions{})
	if err != nil {
		return err
	}
	jobs, services := quota.Status.Used["count/jobs.batch"], quota.Status.Used["services"]
	seen["quota"] = fmt.Sprintf("%s jobs, %s services", jobs.String(), services.String())
	pods, err := s.client.CoreV1().Pods(namespace).List(ctx, all)
	if err != nil {
		return err
	}
	running, schedulers := 0, map[string]bool{}
	for _, o := range pods.Items {
		if o.Status.Phase == corev1.PodRunning && o.DeletionTimestamp == nil {
			running++
		}
	}
	events, err := s.client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=Scheduled"})
	if err != nil {
		return err
	}
	for _, o := range events.Items {
		schedulers[o.ReportingController] = true
	}
	for name := range schedulers {
		seen["pods"] = strings.TrimSpace(fmt.Sprintf("%d running, scheduled by %s", running, name))
	}
	return nil
}

// checkCronJob checks that Jobs were started every minute, and that old ones were removed.
func (s *side) checkCronJob(ctx context.Context, since time.Time) {
	s.t.Helper()
	for end := time.Now().Add(90 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		o, err := s.client.BatchV1().CronJobs("default").Get(ctx, "every-minute", metav1.GetOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		jobs, err := s.client.BatchV1().Jobs("default").List(ctx, metav1.ListOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			s.t.Fatal(err)
		}
		last := o.Status.LastScheduleTime
		if last != nil && time.Since(last.Time) < 70*time.Second && o.Status.LastSuccessfulTime != nil &&
			len(jobs.Items) > 0 && len(jobs.Items) <= 3 && (time.Since(since) < 4*time.Minute || len(jobs.Items) >= 2) {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("the CronJob: last scheduled %v, %d jobs, status %+v", last, len(jobs.Items), o.Status)
		}
	}
}
