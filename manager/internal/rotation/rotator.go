package rotation

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/certs"
	"github.com/flyball-dev/flyball/manager/webhook"
	"github.com/flyball-dev/flyball/reconcile"
)

// rotator writes the Secret and the bundles. The rotators of other replicas do so at the same time.
type rotator struct {
	options webhook.Certificates
	store   *CertificateStore
	reader  client.Reader // asks the server
	client  client.Client
	targets []target

	// trustedSince is the first time at which every existing configuration had bundle, which includes the next
	// authority. It is zero if one of them does not have it. Only the worker uses these fields.
	trustedSince time.Time
	bundle       []byte
}

// found is a configuration that was read.
type found struct {
	target
	object  *unstructured.Unstructured
	clients []map[string]any // parts of object
}

func (r *rotator) reconcile(ctx context.Context) (reconcile.Result, error) {
	// Read the configurations first. If the Secret were older, a newer bundle of another replica could be overwritten.
	configurations, readErr := r.read(ctx)
	secret, err := readSecret(ctx, r.reader, r.store.secret)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := time.Now()
	o := observed{now: now, names: r.store.names, state: r.decodeSecret(ctx, secret)}
	if o.state.lost() {
		for _, f := range configurations {
			o.published = append(o.published, authorities(f.clients, r.authority())...)
		}
		if old := r.store.lastGood(); !old.lost() {
			klog.FromContext(ctx).Info("Secret of the certificate was lost, restoring it")
			o.state = old
		}
	}
	o.settled = readErr == nil && r.hasSettled(o.state, configurations, now)
	d := plan(o)
	wanted, err := r.apply(d, o.state)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.write(ctx, secret, wanted); err != nil {
		return reconcile.Result{}, err
	}
	d.log(ctx, wanted)
	r.store.update(wanted, nil)
	err = errors.Join(readErr, r.publish(ctx, configurations, encodeBundle(wanted.trusted)))
	return reconcile.Result{RequeueAfter: wanted.pause(now)}, err
}

// decodeSecret returns the state in the Secret, as far as it can be decoded.
func (r *rotator) decodeSecret(ctx context.Context, secret *corev1.Secret) state {
	if secret == nil {
		return state{}
	}
	s, wrong := decode(secret.Data)
	if wrong != nil {
		klog.FromContext(ctx).Info("Secret of the certificate was garbled, mending it", "err", wrong)
	}
	return s
}

// read reads the configurations that exist. The error lists those that could not be read.
func (r *rotator) read(ctx context.Context) (all []found, err error) {
	var failed []error
	for _, t := range r.targets {
		u, err := t.read(ctx, r.reader)
		if err != nil {
			failed = append(failed, err)
		} else if u != nil {
			all = append(all, found{t, u, r.store.clients(u)})
		}
	}
	return all, errors.Join(failed...)
}

// hasSettled reports whether all configurations have had the next authority for long enough.
func (r *rotator) hasSettled(s state, configurations []found, now time.Time) bool {
	if s.next == nil {
		r.trustedSince = time.Time{}
		return false
	}
	bundle := encodeBundle(s.trusted)
	if !bytes.Equal(bundle, r.bundle) {
		r.trustedSince, r.bundle = time.Time{}, bundle
	}
	for _, f := range configurations {
		for _, config := range f.clients {
			if !bytes.Equal(bundleOf(config), bundle) {
				r.trustedSince = time.Time{}
				return false
			}
		}
	}
	if r.trustedSince.IsZero() {
		r.trustedSince = now
	}
	return now.Sub(r.trustedSince) >= settle
}

// apply returns the state that results from the decision.
func (r *rotator) apply(d decision, s state) (state, error) {
	s.trusted = d.trusted
	if d.create {
		next, err := certs.Named(r.authority(), r.options.AuthorityLifetime)
		if err != nil {
			return s, fmt.Errorf("make an authority: %w", err)
		}
		s.next, s.trusted = next, append([]*x509.Certificate{next.Certificate()}, s.trusted...)
	}
	if d.promote {
		s.signing, s.next = s.next, nil
	}
	if d.sign {
		pair, err := s.signing.For(r.options.Lifetime).Names(d.names...)
		if err != nil {
			return s, fmt.Errorf("sign a certificate: %w", err)
		}
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return s, fmt.Errorf("sign a certificate: %w", err)
		}
		s.serving = &pair
	}
	return s, nil
}

// log logs new authorities and certificates. It is called after they were written, because those that could not be
// written are made again.
func (d decision) log(ctx context.Context, s state) {
	log := klog.FromContext(ctx)
	if d.create {
		log.Info("Made an authority for webhooks", "ends", s.trusted[0].NotAfter)
	}
	if d.sign {
		log.Info("Signed a certificate for webhooks", "ends", s.serving.Leaf.NotAfter)
	}
}

// authority is the common name of authorities.
func (r *rotator) authority() string { return "flyball-webhooks " + r.store.secret.String() }

// write makes the Secret hold the state. It changes neither labels nor other keys.
func (r *rotator) write(ctx context.Context, secret *corev1.Secret, s state) error {
	data, err := s.encode()
	if err != nil {
		return err
	}
	create, same := secret == nil, true
	if create {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: r.store.secret.Namespace, Name: r.store.secret.Name,
		}}
	}
	for _, key := range ownKeys {
		same = same && bytes.Equal(secret.Data[key], data[key])
		delete(secret.Data, key)
	}
	if same && !create {
		return nil
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	maps.Copy(secret.Data, data)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(secret)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(secretKind)
	if create {
		err = r.client.Create(ctx, u)
	} else {
		err = r.client.Update(ctx, u) // fails if the Secret has changed: u has the version that was read
	}
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "failed calling webhook"):
		return fmt.Errorf("write Secret %s: if this webhook is served with the certificate in the Secret, exclude the "+
			"namespace by its namespaceSelector: %w", r.store.secret, err)
	case create && apierrors.IsNotFound(err):
		return fmt.Errorf("write Secret %s: %w: create the namespace, or run without webhooks",
			r.store.secret, err)
	}
	return fmt.Errorf("write Secret %s: %w", r.store.secret, err)
}

// publish writes the bundle into the configurations.
func (r *rotator) publish(ctx context.Context, configurations []found, bundle []byte) error {
	var failed []error
	for _, f := range configurations {
		if !trust(f.clients, bundle) {
			continue
		}
		klog.FromContext(ctx).Info("Setting caBundle", "object", f.String())
		if err := r.client.Update(ctx, f.object); err != nil {
			failed = append(failed, fmt.Errorf("set caBundle of %s: %w", f, err))
		}
	}
	return errors.Join(failed...)
}
