package capstone

import (
	"encoding/json"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// decodeService reads the parts of a Service that its Endpoints depend on.
func decodeService(o *kube.Object) (*kube.Service, error) {
	var parsed struct {
		Spec struct{ Selector map[string]string }
	}
	err := json.Unmarshal(o.JSON, &parsed)
	return &kube.Service{Object: *o, Selector: parsed.Spec.Selector}, err
}

// decodePod reads the parts of a Pod that Endpoints show.
func decodePod(o *kube.Object) (*kube.Pod, error) {
	var parsed struct {
		Metadata struct{ DeletionTimestamp string }
		Status   struct {
			Phase, PodIP string
			Conditions   []struct{ Type, Status string }
		}
	}
	err := json.Unmarshal(o.JSON, &parsed)
	p := &kube.Pod{Object: *o, IP: parsed.Status.PodIP, Deleting: parsed.Metadata.DeletionTimestamp != ""}
	p.Ended = parsed.Status.Phase == "Succeeded" || parsed.Status.Phase == "Failed"
	for _, c := range parsed.Status.Conditions {
		p.Ready = p.Ready || c.Type == "Ready" && c.Status == "True"
	}
	return p, err
}

// subset is a part of the JSON of Endpoints.
type subset struct {
	Addresses         []address `json:"addresses,omitempty"`
	NotReadyAddresses []address `json:"notReadyAddresses,omitempty"`
}

type address struct {
	IP string `json:"ip"`
}

// decodeEndpoints reads the addresses of Endpoints.
func decodeEndpoints(o *kube.Object) (*kube.Endpoints, error) {
	var parsed struct{ Subsets []subset }
	err := json.Unmarshal(o.JSON, &parsed)
	e := &kube.Endpoints{Object: *o}
	for _, s := range parsed.Subsets {
		for _, a := range s.Addresses {
			e.Ready = append(e.Ready, a.IP)
		}
		for _, a := range s.NotReadyAddresses {
			e.NotReady = append(e.NotReady, a.IP)
		}
	}
	return e, err
}

// encodeEndpoints returns the JSON of Endpoints with the addresses of e. What else the server has of the object stays.
func encodeEndpoints(e *kube.Endpoints) ([]byte, error) {
	object := map[string]any{"metadata": map[string]any{
		"namespace": e.Namespace, "name": e.Name, "labels": map[string]string{managedBy: name},
	}}
	if e.JSON != nil {
		if err := json.Unmarshal(e.JSON, &object); err != nil {
			return nil, err
		}
	}
	s := subset{}
	for _, ip := range e.Ready {
		s.Addresses = append(s.Addresses, address{ip})
	}
	for _, ip := range e.NotReady {
		s.NotReadyAddresses = append(s.NotReadyAddresses, address{ip})
	}
	object["subsets"] = []subset{s}
	if len(e.Ready)+len(e.NotReady) == 0 {
		delete(object, "subsets")
	}
	object["apiVersion"], object["kind"] = "v1", "Endpoints" // The items of a list do not have them.
	return json.Marshal(object)
}
