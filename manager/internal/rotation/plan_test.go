package rotation

import (
	"crypto/x509"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/internal/certs"
	"github.com/flyball-dev/flyball/manager/webhook"
)

var names = []string{"hooks.default.svc"}

func authority(t *testing.T, lifetime time.Duration) *certs.Authority {
	t.Helper()
	a, err := certs.Named("test", lifetime)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// signed returns a state whose authority has signed a certificate.
func signed(t *testing.T, a *certs.Authority, lifetime time.Duration, names ...string) state {
	t.Helper()
	pair, err := a.For(lifetime).Names(names...)
	if err != nil {
		t.Fatal(err)
	}
	if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
		t.Fatal(err)
	}
	return state{signing: a, trusted: []*x509.Certificate{a.Certificate()}, serving: &pair}
}

func with(s state, change func(*state)) state {
	change(&s)
	return s
}

func TestPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now, day := time.Now(), 24*time.Hour
		a, b := authority(t, 100*day), authority(t, 100*day)
		good := signed(t, a, 10*day, names...)
		ending := signed(t, authority(t, 10*day), 10*day, names...)
		rotating := with(ending, func(s *state) {
			s.next, s.trusted = b, append([]*x509.Certificate{b.Certificate()}, s.trusted...)
		})
		both := state{next: b, trusted: []*x509.Certificate{a.Certificate(), b.Certificate()}}
		published := []*x509.Certificate{a.Certificate()}
		for _, c := range []struct {
			name                  string
			o                     observed
			create, promote, sign bool
			trusted               int
		}{
			{"nothing", observed{}, true, true, true, 0},
			{"everything", observed{state: good}, false, false, false, 1},
			{"a certificate that ends", observed{state: good, now: now.Add(7 * day)}, false, false, true, 1},
			{"one that has ended", observed{state: good, now: now.Add(11 * day)}, false, false, true, 1},
			{"another name", observed{state: signed(t, a, day, "other")}, false, false, true, 1},
			{"another authority's", observed{state: with(good, func(s *state) {
				s.serving = signed(t, b, day, names...).serving
			})}, false, false, true, 1},
			{"no certificate", observed{state: with(good, func(s *state) { s.serving = nil })}, false, false, true, 1},
			{"an authority that ends", observed{state: ending, now: now.Add(7 * day)}, true, false, false, 1},
			{"its successor is not known", observed{state: rotating}, false, false, false, 2},
			{"its successor is known", observed{state: rotating, settled: true}, false, true, true, 2},
			{"one that ended", observed{state: ending, now: now.Add(11 * day)}, true, true, true, 0},
			{"one that ended, with one", observed{state: rotating, now: now.Add(11 * day)}, false, true, true, 1},
			{"a clock before everything", observed{state: good, now: now.Add(-day)}, true, false, false, 1},
			{"an hour of doubt", observed{state: good, now: now.Add(-59 * time.Minute)}, false, false, false, 1},
			{"lost, and others may serve", observed{published: published}, true, false, false, 1},
			{"lost, not known yet", observed{state: both}, false, false, false, 2},
			{"lost, known", observed{state: state{next: b, trusted: published}, settled: true}, false, true, true, 1},
			{"without its key", observed{state: with(good, func(s *state) { s.signing = nil })}, true, false, false, 1},
		} {
			if c.o.now.IsZero() {
				c.o.now = now
			}
			c.o.names = names
			d := plan(c.o)
			if d.create != c.create || d.promote != c.promote || d.sign != c.sign || len(d.trusted) != c.trusted {
				t.Errorf("%s: create %v, promote %v, sign %v, trusted %d; want %v, %v, %v, %d", c.name,
					d.create, d.promote, d.sign, len(d.trusted), c.create, c.promote, c.sign, c.trusted)
			}
		}
	})
}

func TestSecretKeepsTheState(t *testing.T) {
	s := signed(t, authority(t, time.Hour), time.Hour, names...)
	s.next = authority(t, time.Hour)
	s.trusted = append(s.trusted, s.next.Certificate())
	data, err := s.encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.trusted) != 2 || !got.signing.Certificate().Equal(s.signing.Certificate()) ||
		!got.next.Certificate().Equal(s.next.Certificate()) || !got.serving.Leaf.Equal(s.serving.Leaf) {
		t.Errorf("%+v", got)
	}
	for key := range data {
		garbled := map[string][]byte{}
		for other, value := range data {
			garbled[other] = value
		}
		garbled[key] = garbled[key][:len(garbled[key])/2]
		if _, err := decode(garbled); err == nil {
			t.Errorf("half of %s is no mistake", key)
		}
	}
}

// If versions of a program want different names, a certificate is signed for the names of both. That also holds for a
// certificate that ends together with its authority. At a renewal, only the wanted names remain.
func TestPlanNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := authority(t, time.Hour)
		for _, c := range []struct {
			name     string
			lifetime time.Duration
			after    time.Duration
			want     []string
		}{
			{"now", 50 * time.Minute, 0, []string{"new", "old", "10.0.0.1"}},
			{"at its renewal", 50 * time.Minute, 40 * time.Minute, []string{"new"}},
			{"never renewed", 2 * time.Hour, 40 * time.Minute, []string{"new", "old", "10.0.0.1"}},
		} {
			s := signed(t, a, c.lifetime, "old", "10.0.0.1")
			d := plan(observed{state: s, now: time.Now().Add(c.after), names: []string{"new"}})
			if !d.sign || !slices.Equal(d.names, c.want) {
				t.Errorf("%s: sign %v for %q, want %q", c.name, d.sign, d.names, c.want)
			}
		}
	})
}

func TestClients(t *testing.T) {
	service := func(namespace, name string) map[string]any {
		return map[string]any{"service": map[string]any{"namespace": namespace, "name": name}}
	}
	url := func(text string) map[string]any { return map[string]any{"url": text} }
	with := NewCertificateStore(webhook.Certificates{
		Namespace: "shop", Service: "hooks", DNSNames: []string{"a.example", "::1"},
	})
	without := NewCertificateStore(webhook.Certificates{Namespace: "shop", DNSNames: []string{"a.example"}})
	for _, c := range []struct {
		config        map[string]any
		with, without bool
	}{
		{service("shop", "hooks"), true, false},
		{service("shop", "other"), false, false},
		{service("other", "hooks"), false, false},
		{service("shop", ""), false, false},
		{url("https://a.example:8443/x"), true, true},
		{url("https://A.EXAMPLE"), true, true},
		{url("https://[::1]:9443"), true, false},
		{url("https://hooks.shop.svc/x"), true, false},
		{url("https://foreign.example/a.example"), false, false},
		{url("https://a.example.org"), false, false},
		{url("%"), false, false},
		{map[string]any{}, false, false},
		{nil, false, false},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{
			"webhooks": []any{map[string]any{"clientConfig": c.config}},
		}}
		if got := len(with.clients(u)) == 1; got != c.with {
			t.Errorf("%v: %v, want %v", c.config, got, c.with)
		}
		if got := len(without.clients(u)) == 1; got != c.without {
			t.Errorf("%v without a Service: %v, want %v", c.config, got, c.without)
		}
	}
}
