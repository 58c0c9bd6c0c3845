package differential

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestMirroredSlicesOfBoth: kube-controller-manager and flyball manager, each on an API server of its own, make the
// same EndpointSlices of the same Endpoints through a list of changes: names, versions and UIDs aside.
func TestMirroredSlicesOfBoth(t *testing.T) {
	sameSlices(t, mirrorSteps(), "--controllers=endpointslicemirroring", "--mirroring-max-endpoints-per-subset=3")
}

func mirrorSteps() []sliceStep {
	endpoints := func(patch string) func(s *sliceSide) { return func(s *sliceSide) { s.patchEndpoints(patch) } }
	service := func(patch string) func(s *sliceSide) { return func(s *sliceSide) { s.patchService(patch) } }
	return []sliceStep{
		{"Endpoints without a Service", (*sliceSide).beginEndpoints, ""},
		{"their Service", (*sliceSide).beginPlainService, "10.9.0.1"},
		{"one is not ready", endpoints(
			`{"subsets":[{"addresses":[{"ip":"10.9.0.1"}],"notReadyAddresses":[{"ip":"10.9.0.2"}],"ports":[{"port":80}]}]}`,
		), `{"ready":false}`},
		{"two families", endpoints(
			`{"subsets":[{"addresses":[{"ip":"10.9.0.1"},{"ip":"fd00::1"}],"ports":[{"port":80}]}]}`,
		), "fd00::1"},
		{"two subsets that share ports, and one with others", endpoints(
			`{"subsets":[{"addresses":[{"ip":"10.9.0.1"}],"ports":[{"name":"a","port":80},{"name":"b","port":81,"appProtocol":"h2c"}]},
			{"addresses":[{"ip":"10.9.0.2"}],"ports":[{"name":"a","port":80}]},
			{"addresses":[{"ip":"10.9.0.3"}],"ports":[{"name":"c","port":53,"protocol":"UDP"}]}]}`,
		), "h2c"},
		{"what an address may say", endpoints(
			`{"subsets":[{"addresses":[{"ip":"10.9.0.1","hostname":"h","nodeName":"n","targetRef":{"kind":"Pod","namespace":"x","name":"p"}}],"ports":[{"port":80}]}]}`,
		), `"hostname":"h"`},
		{"no port", endpoints(`{"subsets":[{"addresses":[{"ip":"10.9.0.1"}]}]}`), `[] {`},
		{"more than are mirrored", endpoints(
			`{"subsets":[{"addresses":[{"ip":"10.9.0.1"},{"ip":"10.9.0.5"},{"ip":"10.9.0.4"}],"notReadyAddresses":[{"ip":"10.9.0.3"}],"ports":[{"port":82}]}]}`,
		), `82`},
		{"labels and annotations", endpoints(
			`{"metadata":{"labels":{"team":"b"},"annotations":{"note":"x","kubectl.kubernetes.io/last-applied-configuration":"{}","endpoints.kubernetes.io/last-change-trigger-time":"2026-01-01T00:00:00Z"}}}`,
		), `"note":"x"`},
		{"labels and annotations of old", endpoints(
			`{"metadata":{"labels":{"team":null,"more":"c"},"annotations":{"note":null}}}`,
		), `"more":"c"`},
		{"a slice is edited", func(s *sliceSide) {
			s.patchSlice(`{"endpoints":[],"metadata":{"labels":{"x":"y"}}}`)
			s.patchEndpoints(`{"metadata":{"labels":{"more":"d"}}}`)
		}, `"more":"d"`},
		{"a slice is deleted", func(s *sliceSide) {
			s.must(s.client.DiscoveryV1().EndpointSlices(s.ns).Delete(s.t.Context(), s.list()[0].Name,
				metav1.DeleteOptions{}))
			s.patchEndpoints(`{"metadata":{"labels":{"more":"e"}}}`)
		}, `"more":"e"`},
		{"not to be mirrored", endpoints(
			`{"metadata":{"labels":{"endpointslice.kubernetes.io/skip-mirror":"true"}}}`,
		), ""},
		{"again to be mirrored", endpoints(
			`{"metadata":{"labels":{"endpointslice.kubernetes.io/skip-mirror":"false"}}}`,
		), `"false"`},
		{"a lock", endpoints(`{"metadata":{"annotations":{"control-plane.alpha.kubernetes.io/leader":"{}"}}}`), ""},
		{"no lock", endpoints(
			`{"metadata":{"annotations":{"control-plane.alpha.kubernetes.io/leader":null}}}`,
		), "10.9.0.1"},
		{"a selector", service(`{"spec":{"selector":{"app":"web"}}}`), ""},
		{"no selector", service(`{"spec":{"selector":null}}`), "10.9.0.1"},
		{"an outside host", service(
			`{"spec":{"type":"ExternalName","externalName":"example.org","clusterIP":null,"clusterIPs":null,"ports":null}}`,
		), "10.9.0.1"},
		{"no address", endpoints(`{"subsets":null}`), ""},
		{"an address", endpoints(`{"subsets":[{"addresses":[{"ip":"10.9.0.7"}],"ports":[{"port":80}]}]}`), "10.9.0.7"},
		{"Endpoints are gone", func(s *sliceSide) {
			s.must(s.client.CoreV1().Endpoints(s.ns).Delete(s.t.Context(), "web", metav1.DeleteOptions{}))
		}, ""},
		{"Endpoints of the same name", (*sliceSide).beginEndpoints, "10.9.0.1"},
		{"the Service is gone", func(s *sliceSide) {
			s.must(s.client.CoreV1().Services(s.ns).Delete(s.t.Context(), "web", metav1.DeleteOptions{}))
		}, ""},
	}
}

func (s *sliceSide) beginPlainService() {
	s.t.Helper()
	_, err := s.client.CoreV1().Services(s.ns).Create(s.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	s.must(err)
}

func (s *sliceSide) beginEndpoints() {
	s.t.Helper()
	//lint:ignore SA1019 They are what is mirrored.
	_, err := s.client.CoreV1().Endpoints(s.ns).Create(s.t.Context(), &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"team": "a"}},
		Subsets: []corev1.EndpointSubset{{
			Addresses: []corev1.EndpointAddress{{IP: "10.9.0.1"}},
			Ports:     []corev1.EndpointPort{{Name: "http", Port: 80}},
		}},
	}, metav1.CreateOptions{})
	s.must(err)
}

func (s *sliceSide) patchEndpoints(patch string) {
	s.t.Helper()
	_, err := s.client.CoreV1().Endpoints(s.ns).Patch(s.t.Context(), "web", types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
	s.must(err)
}

func (s *sliceSide) patchSlice(patch string) {
	s.t.Helper()
	_, err := s.client.DiscoveryV1().EndpointSlices(s.ns).Patch(s.t.Context(), s.list()[0].Name, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{})
	s.must(err)
}
