package seeded

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/flyball-dev/flyball/simtest"
)

// TestMain lets client-go list instead of stream at the start, as it does with servers before v1.32 or without the
// feature WatchList. Lists may come from a replica that lags; streams begin with the newest state.
func TestMain(m *testing.M) {
	if err := os.Setenv("KUBE_FEATURE_WatchListClient", "false"); err != nil {
		panic(err)
	}
	ctrllog.SetLogger(logr.Discard())
	m.Run()
}

// build returns the Build of a scenario whose program is a manager of controller-runtime with what register adds to it.
// Servers stay off: there are no sockets in a simulation. A process starts more than once, so that names of controllers
// repeat.
func build(register func(mgr ctrl.Manager) error) func(e *simtest.Env) (simtest.Program, error) {
	return func(e *simtest.Env) (simtest.Program, error) {
		mgr, err := ctrl.NewManager(e.Config(), ctrl.Options{
			Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
			Controller: config.Controller{SkipNameValidation: new(true)},
		})
		if err != nil {
			return nil, err
		}
		return simtest.ProgramFunc(mgr.Start), register(mgr)
	}
}

// named returns the metadata of an object in the namespace "default".
func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }

// configMap returns a ConfigMap. data are keys and values in turn.
func configMap(name string, data ...string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: named(name), Data: map[string]string{}}
	for i := 0; i < len(data); i += 2 {
		m.Data[data[i]] = data[i+1]
	}
	return m
}

// selected returns labels, a selector of them, and a template of Pods that have them.
func selected(name string) (*metav1.LabelSelector, corev1.PodTemplateSpec) {
	labels := map[string]string{"app": name}
	return &metav1.LabelSelector{MatchLabels: labels}, corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main:1"}}},
	}
}

// deployment returns a Deployment of one replica.
func deployment(name string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: named(name)}
	d.Spec.Replicas = new(int32(1))
	d.Spec.Selector, d.Spec.Template = selected(name)
	return d
}

// statefulSet returns a StatefulSet.
func statefulSet(name string, replicas int32) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{ObjectMeta: named(name)}
	s.Spec.Replicas = &replicas
	s.Spec.Selector, s.Spec.Template = selected(name)
	return s
}
