package plural

import "testing"

func TestOf(t *testing.T) {
	for kind, want := range map[string]string{
		"Pod": "pods", "Ingress": "ingresses", "NetworkPolicy": "networkpolicies", "Gateway": "gateways",
		"Mailbox": "mailboxes", "Mesh": "meshes", "Batch": "batches", "Endpoints": "endpoints",
	} {
		if got := Of(kind); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
	}
}
