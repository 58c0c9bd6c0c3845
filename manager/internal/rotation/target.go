package rotation

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/webhook"
)

// target names an object with caBundles.
type target struct {
	kind schema.GroupVersionKind
	name string
}

func (t target) String() string { return t.kind.Kind + " " + t.name }

func targetsOf(o webhook.Certificates) (all []target) {
	for _, kind := range []struct {
		group, kind string
		names       []string
	}{
		{"admissionregistration.k8s.io", "ValidatingWebhookConfiguration", o.ValidatingWebhooks},
		{"admissionregistration.k8s.io", "MutatingWebhookConfiguration", o.MutatingWebhooks},
		{"apiextensions.k8s.io", "CustomResourceDefinition", o.CustomResourceDefinitions},
	} {
		for _, name := range kind.names {
			all = append(all, target{schema.GroupVersionKind{Group: kind.group, Version: "v1", Kind: kind.kind}, name})
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

// clients returns the clientConfigs in an object that point to our webhooks. Changes to them change the object.
func (c *CertificateStore) clients(u *unstructured.Unstructured) (all []map[string]any) {
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
		if config := object(f); c.pointsToUs(config) {
			all = append(all, config)
		}
	}
	return all
}

// pointsToUs reports whether a clientConfig names our Service, or has a URL with one of our names.
func (c *CertificateStore) pointsToUs(config map[string]any) bool {
	if to := object(config["service"]); len(to) > 0 {
		return c.service.Name != "" && to["name"] == c.service.Name && to["namespace"] == c.service.Namespace
	}
	text, _ := config["url"].(string)
	to, err := url.Parse(text)
	return err == nil && slices.ContainsFunc(c.names, func(name string) bool {
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

// authorities returns the authorities with that common name in the bundles of the configs.
func authorities(configs []map[string]any, name string) (all []*x509.Certificate) {
	for _, config := range configs {
		trusted, _ := decodeBundle(bundleOf(config)) // A damaged bundle will be replaced.
		for _, c := range trusted {
			if c.Subject.CommonName == name {
				all = append(all, c)
			}
		}
	}
	return all
}
