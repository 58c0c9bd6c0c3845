package rotation

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/webhook"
	"github.com/flyball-dev/flyball/reconcile"
)

// target names an object with caBundles.
type target struct {
	kind schema.GroupVersionKind
	name string
}

func (t target) String() string { return t.kind.Kind + " " + t.name }

func targetsOf(o webhook.Certificates) (all []target) {
	for _, of := range []struct {
		group, kind string
		names       []string
	}{
		{"admissionregistration.k8s.io", "ValidatingWebhookConfiguration", o.ValidatingWebhooks},
		{"admissionregistration.k8s.io", "MutatingWebhookConfiguration", o.MutatingWebhooks},
		{"apiextensions.k8s.io", "CustomResourceDefinition", o.CustomResourceDefinitions},
	} {
		for _, name := range of.names {
			all = append(all, target{schema.GroupVersionKind{Group: of.group, Version: "v1", Kind: of.kind}, name})
		}
	}
	return all
}

// read returns the object, or nil if it does not exist.
func (t target) read(ctx context.Context, from client.Reader) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(t.kind)
	err := from.Get(ctx, types.NamespacedName{Name: t.name}, u)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", t, err)
	}
	return u, nil
}

// clients returns the clientConfigs of an object that lead to us. Changes of them change the object.
func (k *Keeper) clients(u *unstructured.Unstructured) (all []map[string]any) {
	var found []any
	if u.GetKind() == "CustomResourceDefinition" {
		conversion := object(object(u.Object["spec"])["conversion"])
		if conversion["strategy"] == "Webhook" {
			found = append(found, object(conversion["webhook"])["clientConfig"])
		}
	} else {
		webhooks, _ := u.Object["webhooks"].([]any)
		for _, w := range webhooks {
			found = append(found, object(w)["clientConfig"])
		}
	}
	for _, f := range found {
		if config := object(f); k.leadsHere(config) {
			all = append(all, config)
		}
	}
	return all
}

// leadsHere reports whether a clientConfig names our Service, or has a URL with one of our names.
func (k *Keeper) leadsHere(config map[string]any) bool {
	if to := object(config["service"]); len(to) > 0 {
		return k.service.Name != "" && to["name"] == k.service.Name && to["namespace"] == k.service.Namespace
	}
	text, _ := config["url"].(string)
	to, err := url.Parse(text)
	return err == nil && slices.ContainsFunc(k.names, func(name string) bool {
		return strings.EqualFold(name, to.Hostname())
	})
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func bundleOf(config map[string]any) []byte {
	text, _ := config["caBundle"].(string)
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return []byte(text)
	}
	return decoded
}

// trust sets the bundles of the configs, and reports whether it changed one.
func trust(configs []map[string]any, bundle []byte) (changed bool) {
	for _, config := range configs {
		if !bytes.Equal(bundleOf(config), bundle) {
			config["caBundle"] = base64.StdEncoding.EncodeToString(bundle)
			changed = true
		}
	}
	return changed
}

// authorities returns what the configs trust and can be read, of the authorities with a common name.
func authorities(configs []map[string]any, name string) (all []*x509.Certificate) {
	for _, config := range configs {
		trusted, _ := decodeBundle(bundleOf(config)) // what somebody garbled is replaced
		for _, c := range trusted {
			if c.Subject.CommonName == name {
				all = append(all, c)
			}
		}
	}
	return all
}

// Keeper has what this replica serves: the last good certificate of the Secret.
//
// Concurrency: all methods may be called from any goroutine.
type Keeper struct {
	secret types.NamespacedName
	names  []string
	// service is that of the webhooks; its name may be empty.
	service types.NamespacedName

	mu sync.Mutex
	// good is the last state whose certificate could be served. Its certificate stays in use until a better one comes.
	good state
	// problem is why the Secret as it is now is not used; nil if it is.
	problem error
	// lacking is why the certificate that is served is not good for all names; nil if it is.
	lacking error
}

// GetCertificate is for the field of that name in [tls.Config].
//
// Errors: there was no good certificate yet.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.good.serving != nil:
		return k.good.serving, nil
	case k.problem != nil:
		return nil, k.problem
	}
	return nil, fmt.Errorf("the Secret %s was not read yet", k.secret)
}

// Note returns what is wrong although a certificate is served: an earlier one than the Secret has, or one that lacks
// names. It is empty if all is well.
func (k *Keeper) Note() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.problem != nil:
		return fmt.Sprintf("serving the last good certificate: %v", k.problem)
	case k.lacking != nil:
		return fmt.Sprintf("serving a certificate that lacks names: the Secret %s: %v", k.secret, k.lacking)
	}
	return ""
}

// take makes the certificate of s the one that is served, if it can be. One that lacks names is served too, unless
// there is one that has them: most calls use a name that it has.
func (k *Keeper) take(s state, wrong error) {
	now, err := time.Now(), wrong
	var lacking error
	if s.serving == nil && err == nil {
		err = errors.New("it has no certificate yet")
	} else if s.serving != nil {
		if err = verify(s.serving.Leaf, s.trusted, nil, now); err == nil {
			lacking = verify(s.serving.Leaf, s.trusted, k.names, now)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.problem = fmt.Errorf("the Secret %s: %w", k.secret, err)
		return
	}
	k.problem, k.lacking = nil, lacking
	if last := k.good.serving; lacking != nil && last != nil && verify(last.Leaf, s.trusted, k.names, now) == nil {
		s.serving, k.lacking = last, nil
	}
	if !s.lost() {
		k.good = s
	} else {
		k.good.serving = s.serving
	}
}

// remembered returns the last good state.
func (k *Keeper) remembered() state {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.good
}

func (k *Keeper) failed(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.problem = err
}

// reconcile serves what the Secret has. Every replica does that.
func (k *Keeper) reconcile(ctx context.Context, from client.Reader) (reconcile.Result, error) {
	secret, err := readSecret(ctx, from, k.secret)
	if err != nil {
		k.failed(err)
		return reconcile.Result{}, err
	}
	if secret == nil {
		k.failed(fmt.Errorf("the Secret %s does not exist; a replica creates it", k.secret))
		return reconcile.Result{}, nil
	}
	s, wrong := decode(secret.Data)
	k.take(s, wrong)
	if note := k.Note(); note != "" {
		klog.FromContext(ctx).Info("Certificate of the Secret is not good", "note", note)
	}
	return reconcile.Result{RequeueAfter: recheck}, nil
}

// readSecret returns the Secret, or nil if it does not exist.
func readSecret(ctx context.Context, from client.Reader, key types.NamespacedName) (*corev1.Secret, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(secretKind)
	err := from.Get(ctx, key, u)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", key, err)
	}
	secret := &corev1.Secret{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, secret); err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", key, err)
	}
	return secret, nil
}

var secretKind = corev1.SchemeGroupVersion.WithKind("Secret")
