package webhookclient

import "testing"

// TestProxies: a proxy is asked for URLs only. The address of a Service is looked up by the dialer, which would take
// that of a proxy for it.
func TestProxies(t *testing.T) {
	var clients Clients
	for what, c := range map[string]struct {
		target Target
		proxy  bool
	}{
		"URL":     {Target{URL: "https://hooks.example.com/a"}, true},
		"service": {Target{Service: &Service{Namespace: "hooks", Name: "a", Port: 443}}, false},
	} {
		r, err := clients.newRoute(c.target)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.remote.Proxy != nil; got != c.proxy {
			t.Errorf("%s: a proxy is asked for: %v, want %v", what, got, c.proxy)
		}
	}
}
